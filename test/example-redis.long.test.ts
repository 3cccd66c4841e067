import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

import { expect, test } from "vitest";
import { startRedis } from "../tools/test-servers/src/index.js";
import { expectAllStopped } from "./programs.js";

const demo = join(import.meta.dirname, "../examples/redis/demo.mjs");

/** Runs the demo to its end, or sends Ctrl-C once it has printed a text. Returns its output. */
async function runDemo(env: Record<string, string> = {}, interruptAt?: string): Promise<{ printed: string; code: number | null }> {
  const child = spawn(process.execPath, [demo], { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  const closed = once(child, "close");
  let printed = "";
  let interrupted = interruptAt === undefined;
  for await (const chunk of child.stdout) {
    printed += chunk;
    if (interrupted || !printed.includes(interruptAt as string)) continue;
    interrupted = true;
    child.kill("SIGINT");
  }
  await closed;
  return { printed, code: child.exitCode };
}

test("three processes share one limit on the Redis that the demo starts, and all is stopped in the end", { timeout: 60_000 }, async () => {
  const { printed, code } = await runDemo();
  expect(code).toBe(0);
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
    const url = `redis://${redis.host}:${redis.port}`;
    for (let run = 0; run < 2; run++) {
      const { printed } = await runDemo({ REDIS_URL: url });
      expect(printed).toContain("10 of 15 requests passed");
    }
    expect(await redis.command("PING")).toBe("PONG");
  } finally {
    await redis.stop();
  }
});

test("Ctrl-C stops the demo and all that it has started", { timeout: 60_000 }, async () => {
  const { printed } = await runDemo({}, "Sending");
  await expectAllStopped(printed, 4);
});
