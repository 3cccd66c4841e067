import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bundled } from "./bundled.js";
import { cases } from "./shut-down/cases.js";

const child = bundled("shut-down/child.ts");

describe.each(["silent", "down"])("a process whose Redis is %s", (state) => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
    if (state === "silent") redis.pause();
    else await redis.kill();
  });
  afterAll(() => redis.stop());

  it.each(Object.keys(cases))("ends by itself when it %s", { timeout: 60_000 }, async (name) => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [child, name, `${redis.port}`]);
    expect(stdout).toBe("nothing more to do\n");
    // The console may report a store that is down, because there is no listener. It must report nothing else.
    expect(stderr.replace(/^\[floodgate\] FLOODGATE_STORE_DOWN: .*\n/gm, "")).toBe("");
  });
});
