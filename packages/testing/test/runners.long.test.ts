import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { startRedis } from "../../../tools/test-servers/src/index.js";
import { createLimiter, slidingWindowLog } from "../../core/src/index.js";
import { redisStore } from "../../store-redis/src/index.js";
import { testClock } from "../src/index.js";

const runners = join(__dirname, "runners");
const commands: Record<string, string[]> = {
  "node:test": ["--test", join(runners, "app.test.cjs")],
  Jest: [
    join(dirname(require.resolve("jest/package.json")), "bin/jest.js"),
    "--ci",
    "--no-watchman",
    "--rootDir",
    runners,
    "--testMatch",
    "**/*.test.cjs",
  ],
};

/** Everything that the runner prints. */
function outputOf(command: readonly string[]): Promise<string> {
  // Vitest's own options would make the runner read sources in place of what was built.
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
  return new Promise((done) => execFile(process.execPath, command, { env }, (_, out, err) => done(out + err)));
}

it.each(Object.entries(commands))(
  "under %s, assertions pass, or fail with what was seen",
  async (_, command) => {
    const output = await outputOf(command);
    expect(output).toMatch(/pass 2\b|2 passed/);
    expect(output).toMatch(/fail 1\b|1 failed/);
    expect(output).toContain("The request should be limited, but the status of its response is 200.");
    expect(output).toContain('RateLimit: "api";r=1;t=');
  },
  120_000,
);

it("a test clock turns a Redis store too", async () => {
  const server = await startRedis();
  const redis = new Redis(server.port);
  try {
    const clock = testClock();
    const policy = slidingWindowLog({ limit: 1, window: "1h" });
    const limiter = createLimiter({ name: "api", policy, store: redisStore(redis, { clock }) });
    expect(await limiter.consume("a")).toMatchObject({ allowed: true, atMs: clock() });
    clock.advance("59m");
    expect(await limiter.consume("a")).toMatchObject({ allowed: false, retryAfterMs: 60_000 });
    clock.advance("1m");
    expect(await limiter.consume("a")).toMatchObject({ allowed: true });
  } finally {
    redis.disconnect();
    await server.stop();
  }
});
