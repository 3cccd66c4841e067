import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startRedis } from "../tools/test-servers/src/index.js";
import { expectAllStopped, withProgram } from "./programs.js";

const run = promisify(execFile);
const demo = join(import.meta.dirname, "../examples/redis/demo.mjs");

test("three processes share one limit on the Redis that the demo starts, and all is stopped in the end", { timeout: 60_000 }, async () => {
  const { stdout: printed } = await run(process.execPath, [demo]);
  expect(printed.match(/ 200 OK$/gm)).toHaveLength(10);
  const limited = [...printed.matchAll(/process (\d+) {2}429 Too Many Requests$/gm)].map(([, pid]) => pid);
  expect(limited).toHaveLength(5);
  expect(new Set(limited).size).toBe(3);
  expect(printed).toMatch(/RateLimit-Policy: "per-ip";q=10;w=60\n {4}RateLimit: "per-ip";r=0;t=\d+\n {4}Retry-After: \d+/);
  await expectAllStopped(printed, 4);
});

test("the demo uses a Redis that it is given, and leaves it running", { timeout: 60_000 }, async () => {
  const redis = await startRedis();
  try {
    const env = { ...process.env, REDIS_URL: `redis://${redis.host}:${redis.port}` };
    for (let i = 0; i < 2; i++) expect((await run(process.execPath, [demo], { env })).stdout).toContain("10 of 15 requests passed");
    expect(await redis.command("PING")).toBe("PONG");
  } finally {
    await redis.stop();
  }
});

test("Ctrl-C stops the demo and all that it has started", { timeout: 60_000 }, async () => {
  let printed = "";
  await withProgram([process.execPath, demo], /Sending/, { signal: "SIGINT" }, async (text) => {
    printed = text;
  });
  await expectAllStopped(printed, 4);
});
