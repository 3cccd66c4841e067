import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, it } from "vitest";

/** An app of one file, as bundlers make it for servers and functions. */
const app = `import { createLimiter, slidingWindowLog } from "@floodgate/core";
import { redisStore } from "@floodgate/store-redis";
import { Redis } from "ioredis";
const redis = new Redis(Number(process.argv[2]));
const key = process.argv[3];
const limiter = createLimiter({ name: "api", policy: slidingWindowLog({ limit: 1, window: "1d" }), store: redisStore(redis), timeoutMs: 20_000 });
(async () => {
  const [first, second] = [await limiter.consume(key), await limiter.consume(key)];
  redis.disconnect();
  console.log(first.allowed, second.allowed, first.degraded || second.degraded);
})();`;

const temp = mkdtempSync(join(tmpdir(), "floodgate-bundled-"));
let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});

afterAll(async () => {
  await server.stop();
  rmSync(temp, { recursive: true, force: true });
});

it.each(["cjs", "esm"] as const)("an app that is bundled into one file (%s) decides in Redis, without other files", async (format) => {
  const outfile = join(temp, `app.${format === "cjs" ? "cjs" : "mjs"}`);
  await build({
    stdin: { contents: app, resolveDir: __dirname },
    bundle: true,
    format,
    platform: "node",
    outfile,
    logLevel: "error",
    // ioredis is CommonJS, and loads Node's modules by `require`.
    banner: format === "esm" ? { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' } : {},
  });
  const { stdout } = await promisify(execFile)(process.execPath, [outfile, String(server.port), format]);
  expect(stdout.trim()).toBe("true false false");
});
