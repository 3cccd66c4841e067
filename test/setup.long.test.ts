import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { temporaryFolder } from "./files.js";

const cwd = temporaryFolder("setup");

test("without a registry, `npm start` and `npm test` say why they cannot install the packages", () => {
  const [install = ""] = manifest.scripts.setup.split(" && ");
  // They run it with `npm run --silent`, which sets the level.
  const npm = { loglevel: "silent", registry: "http://127.0.0.1:1", cache: cwd, fetch_retries: "0" };
  const env = { ...process.env, ...Object.fromEntries(Object.entries(npm).map(([name, value]) => [`npm_config_${name}`, value])) };
  const { status, stderr } = spawnSync(install, { cwd, env, shell: true, encoding: "utf8" });
  expect([status, stderr]).toEqual([1, expect.stringContaining("ECONNREFUSED 127.0.0.1:1")]);
});
