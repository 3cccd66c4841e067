import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "./files.js";
import { install, pack, run, tarballsIn } from "./packed.js";

// The tarballs as others install them: each package manager, and each TypeScript that we support.

const temp = temporaryFolder("consumers");
/** What a small app needs of ours, with what that needs. */
const used = ["core", "store-memory", "store-redis", "express", "rules"];
const tarballs = tarballsIn(temp, used);

const smoke = (load: string) => `${load}
const app = express();
app.use(rateLimit({ limit: 2, window: "365d" }));
app.get("/", (req, res) => res.send("hello"));
const server = app.listen(0, "127.0.0.1", async () => {
  const statuses = [];
  for (let i = 0; i < 3; i++) statuses.push((await fetch("http://127.0.0.1:" + server.address().port)).status);
  server.close();
  console.log(statuses.join());
});
// The store has read its Lua scripts when it is loaded.
if (typeof redisStore !== "function") throw new Error("There is no Redis store.");
parseRules("rules: [{ name: a, limit: 1, window: 1m }]");
`;

const files = {
  "smoke.cjs": smoke(`const express = require("express");
const { rateLimit } = require("@floodgate/express");
const { redisStore } = require("@floodgate/store-redis");
const { parseRules } = require("@floodgate/rules");`),
  "smoke.mjs": smoke(`import express from "express";
import { rateLimit } from "@floodgate/express";
import { redisStore } from "@floodgate/store-redis";
import { parseRules } from "@floodgate/rules";`),
};

beforeAll(() => pack(temp, used), 180_000);

describe("the tarballs, installed", { timeout: 300_000 }, () => {
  const npx = (tool: string, bin: string) => ["--yes", "--package", tool, bin];
  const berry = npx("@yarnpkg/cli-dist@4", "yarn");

  it.each<[manager: string, manifest: object, installs: string[], node: string[], config?: Record<string, string>]>([
    [
      "npm",
      { overrides: overridden("$") },
      ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"],
      ["node"],
    ],
    [
      "pnpm",
      {},
      ["npx", ...npx("pnpm@12", "pnpm"), "install"],
      ["node"],
      { "pnpm-workspace.yaml": `overrides: ${JSON.stringify(tarballs)}\n` },
    ],
    // A cache of its own: the common one keeps tarballs by name and version, and would install those of an earlier run.
    [
      "Yarn 1",
      { resolutions: tarballs },
      ["npx", ...npx("yarn@1", "yarn"), "install", "--ignore-scripts", "--cache-folder", join(temp, "yarn-1-cache")],
      ["node"],
    ],
    [
      "Yarn 4 with Plug'n'Play",
      { resolutions: tarballs },
      ["npx", ...berry, "install"],
      ["npx", ...berry, "node"],
      {
        "yarn.lock": "",
        // Yarn loads ES modules by itself only if a package.json says "type": "module". None of our packages does.
        ".yarnrc.yml":
          "nodeLinker: pnp\npnpEnableEsmLoader: true\nenableTelemetry: false\nenableGlobalCache: false\nenableScripts: false\n",
      },
    ],
    [
      "Yarn 4 with node_modules",
      { resolutions: tarballs },
      ["npx", ...berry, "install"],
      ["node"],
      {
        "yarn.lock": "",
        ".yarnrc.yml": "nodeLinker: node-modules\nenableTelemetry: false\nenableGlobalCache: false\nenableScripts: false\n",
      },
    ],
  ])(
    "by %s limit requests by require and by import",
    async (manager, manifest, [command = "", ...args], [node = "", ...nodeArgs], config) => {
      const folder = join(temp, manager.replace(/\W+/g, "-"));
      mkdirSync(folder);
      const dependencies = { ...tarballs, express: "^5.0.0" };
      write(folder, {
        "package.json": JSON.stringify({ name: "app", version: "1.0.0", private: true, dependencies, ...manifest }),
        ...files,
        ...config,
      });
      await run(command, args, folder);
      for (const file of Object.keys(files)) expect(await run(node, [...nodeArgs, file], folder), file).toContain("200,200,429\n");
    },
  );
});

describe("the types", { timeout: 300_000 }, () => {
  const compilers = ["~5.4.0", "~5.9.0", "^6.0.0", "^7.0.0", "latest"];
  const alias = (range: string) => `typescript-${range.replace(/[^\w.]/g, "")}`;
  const folder = join(temp, "types");

  const consumer = `
import { createLimiter, type Decision, fixedWindow, FloodgateError } from "@floodgate/core";
import { rateLimit } from "@floodgate/express";
import { fileRules } from "@floodgate/rules";
import { memoryStore } from "@floodgate/store-memory";
import express from "express";

const app = express();
app.use(rateLimit({ limit: 100, window: "1m" }));
app.get("/posts/:id", rateLimit({ limit: 5, window: "1s", key: (req, { ip }) => [ip, req.params.id] }), (req, res) => {
  const left: number | undefined = req.rateLimit?.remaining;
  res.json({ id: req.params.id, left });
});
export const rules = fileRules("limits.yaml");
const limiter = createLimiter({ name: "api", policy: fixedWindow({ limit: 5, window: "1m" }), store: memoryStore() });
export const decision: Decision = limiter.consume("ann");
export const known: boolean = new Error() instanceof FloodgateError;
// @ts-expect-error nothing has come out as any
export const text: string = limiter.consume("ann");
// @ts-expect-error a limit is a number
rateLimit({ limit: "100", window: "1m" });
// @ts-expect-error a duration has a unit
rateLimit({ limit: 100, window: "1 fortnight" });
`;

  beforeAll(async () => {
    mkdirSync(folder);
    const others = { express: "^5.0.0", "@types/express": "^5.0.0", "@types/node": "^20.19.0" };
    const typescripts = Object.fromEntries(compilers.map((range) => [alias(range), `npm:typescript@${range}`]));
    const manifest = { private: true, dependencies: { ...tarballs, ...others, ...typescripts }, overrides: overridden("$") };
    write(folder, {
      "package.json": JSON.stringify(manifest),
      ...Object.fromEntries(["ts", "mts", "cts"].map((end) => [`consumer.${end}`, consumer])),
    });
    await install(folder);
  }, 300_000);

  const resolutions = [
    ["node16", "node16"],
    ["nodenext", "nodenext"],
    ["esnext", "bundler"],
  ] as const;

  it.each(compilers.flatMap((range) => resolutions.map(([module, resolution]) => [range, resolution, module] as const)))(
    "hold with TypeScript %s and moduleResolution %s, strictest",
    async (range, moduleResolution, module) => {
      const strictest = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false };
      const compilerOptions = {
        module,
        moduleResolution,
        target: "es2022",
        lib: ["es2022"],
        types: ["node"],
        esModuleInterop: true,
        noEmit: true,
      };
      const config = `tsconfig.${alias(range)}.${moduleResolution}.json`;
      write(folder, { [config]: JSON.stringify({ compilerOptions: { ...compilerOptions, ...strictest }, include: ["consumer.*"] }) });
      await run(process.execPath, [join("node_modules", alias(range), "bin/tsc"), "-p", config], folder);
    },
  );
});

/** npm takes an override only as what is installed. */
function overridden(sign: string): Record<string, string> {
  return Object.fromEntries(Object.keys(tarballs).map((name) => [name, `${sign}${name}`]));
}

function write(folder: string, contents: Readonly<Record<string, string>>): void {
  for (const [file, content] of Object.entries(contents)) writeFileSync(join(folder, file), content);
}
