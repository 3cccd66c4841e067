import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { startEtcd, startRedis } from "../tools/test-servers/src/index.js";
import { temporaryFolder } from "./files.js";
import { install, pack, root, run } from "./packed.js";
import { urlIn, withProgram } from "./programs.js";

// What a user gets who copies an example: its folder, installed from the packages as they would be published.

const temp = temporaryFolder("examples");
let tarballs: Record<string, string>;

beforeAll(async () => {
  tarballs = await pack(temp);
}, 180_000);

/** Copies an example, and installs what it needs to run. */
async function copied(example: string): Promise<string> {
  const folder = join(temp, example);
  cpSync(join(root, "examples", example), folder, { recursive: true, filter: (path) => basename(path) !== "node_modules" });
  const file = join(folder, "package.json");
  const { dependencies, devDependencies, ...rest } = JSON.parse(readFileSync(file, "utf8"));
  const own = Object.fromEntries(Object.keys(dependencies).flatMap((name) => (name in tarballs ? [[name, tarballs[name]]] : [])));
  // npm refuses an override of a development dependency that names another version.
  writeFileSync(file, JSON.stringify({ ...rest, dependencies: { ...dependencies, ...own }, overrides: tarballs }));
  await install(folder, "--omit=dev");
  return folder;
}

describe("an example that is copied out of the repository", { timeout: 120_000 }, () => {
  it.each(["express", "koa", "hono", "fetch"])("%s limits its clients, and answers bad input with 400", async (example) => {
    const folder = await copied(example);
    const options = { cwd: folder, env: { ...process.env, PORT: "0" }, detached: true };
    await withProgram(["npm", "start", "--silent"], /\n/, options, async (printed) => {
      const url = urlIn(printed);
      const statuses = [];
      for (let i = 0; i < 11; i++) statuses.push((await fetch(url)).status);
      // Eleven requests are in at most two windows of five.
      expect(new Set(statuses)).toEqual(new Set([200, 429]));
      const login = (body: string | undefined) =>
        fetch(`${url}/login`, { method: "POST", headers: { "content-type": "application/json" }, ...(body && { body }) });
      expect((await login("{")).status).toBe(400);
      expect((await login('{"password":1}')).status).toBe(400);
      expect((await login('{"user":{"toString":1}}')).status).toBe(400);
      expect((await login('{"user":"ada"}')).status).toBe(401);
    });
  });

  it("redis shares one limit on a Redis that it is given", async () => {
    const folder = await copied("redis");
    const redis = await startRedis();
    try {
      const env = { REDIS_URL: `redis://${redis.host}:${redis.port}` };
      expect(await run("npm", ["start", "--silent"], folder, env)).toContain("10 of 15 requests passed");
    } finally {
      await redis.stop();
    }
  });

  it("custom-store shares one limit in an etcd that it is given", async () => {
    const folder = await copied("custom-store");
    const etcd = await startEtcd();
    const env = { ...process.env, PORT: "0", ETCD_URL: `http://${etcd.host}:${etcd.port}` };
    try {
      await withProgram(["npm", "start", "--silent"], /\n/, { cwd: folder, env, detached: true }, async (printed) => {
        const statuses: number[] = [];
        for (let i = 0; i < 6; i++) statuses.push((await fetch(printed.trim())).status);
        expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
      });
    } finally {
      await etcd.stop();
    }
  });
});
