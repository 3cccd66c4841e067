import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import { createLimiter, type Decision, fixedWindow } from "@floodgate/core";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { Redis } from "@upstash/redis";
import { Redis as FastlyRedis } from "@upstash/redis/fastly";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { patienceMs } from "./patient-store.js";
import { startRestServer } from "./rest-server.js";

const packages = join(__dirname, "../..");

/** Bundles code without anything of Node. It fails if the code imports a module of Node. */
async function bundled(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: __dirname },
    bundle: true,
    format: "iife",
    globalName: "bundle",
    platform: "browser",
    conditions: ["@floodgate/source"],
    loader: { ".lua": "text" },
    write: false,
    logLevel: "silent",
  });
  return (outputFiles[0] as { text: string }).text;
}

it("core, the doors for Request and Response, and the stores that are not of one machine import no module of Node", async () => {
  const drivers = ["d1", "deno-kv", "durable-object", "libsql", "mysql", "postgres"].map((name) => `store-database/src/${name}`);
  const files = [
    ...["core", "store-memory", "store-redis", "store-database", "hono", "fetch"].map((name) => `${name}/src/index`),
    ...drivers,
  ];
  await bundled(files.map((file, i) => `export * as all${i} from ${JSON.stringify(join(packages, `${file}.ts`))};`).join("\n"));
});

const app = `import { createLimiter, fixedWindow } from "@floodgate/core";
import { redisStore } from "../src/index.js";
import { Redis } from "@upstash/redis/cloudflare";
export function limiterOf(url, token) {
  const store = redisStore(new Redis({ url, token }));
  return createLimiter({ name: "api", policy: fixedWindow({ limit: 20, window: "365d" }), store, timeoutMs: ${patienceMs}, onStoreError: "deny" });
}`;

/** What the package edge-runtime 4.0.1, Vercel's, has of these: no modules of Node, and a \`process\` with nothing but \`env\`. */
const globals = {
  ...{
    EdgeRuntime: "edge-runtime",
    process: { env: {} },
    console,
    fetch,
    URL,
    TextEncoder,
    AbortSignal,
    Event,
    EventTarget,
    performance,
    crypto,
  },
  ...{ setTimeout: (run: () => void, ms: number) => Number(setTimeout(run, ms)), clearTimeout, queueMicrotask },
};

describe("an edge runtime without Node's modules", () => {
  const token = "a token";
  let redis: RedisServer;
  let rest: Awaited<ReturnType<typeof startRestServer>>;
  let commands = 0;
  /** Awaited before each command. */
  let before: () => unknown = () => undefined;
  let limiterOf: (url: string, token: string) => { consume(key: string): Promise<Decision> };
  beforeAll(async () => {
    redis = await startRedis();
    rest = await startRestServer(redis.port, token, () => {
      commands++;
      return before();
    });
    ({ limiterOf } = runInContext(`${await bundled(app)};bundle`, createContext({ ...globals })));
  });
  afterAll(async () => {
    await rest.stop();
    await redis.stop();
  });

  it("counts in Redis over HTTP, exactly, and no request waits for what another one has sent", async () => {
    const limiter = limiterOf(rest.url, token);
    await limiter.consume("another");
    commands = 0;
    let asked = 0;
    before = () => (asked++ === 0 ? new Promise(() => undefined) : undefined);
    void limiter.consume("key");
    const decisions = await Promise.all(Array.from({ length: 40 }, () => limiter.consume("key")));
    expect(decisions.filter(({ allowed, degraded }) => allowed && !degraded)).toHaveLength(20);
    expect(commands).toBe(41);
  });
});

it("what the client says to fetch is passed on: Next.js stores no answers, and Fastly finds its backend", async () => {
  const asked: unknown[] = [];
  vi.stubGlobal("fetch", async (_: string, { cache, backend }: { cache?: string; backend?: string }) => {
    asked.push({ cache, backend });
    return new Response("{}");
  });
  try {
    const { redisStore } = await import("../src/index.js");
    const client = new Redis({ url: "https://a.example.com", token: "a token" });
    const fastly = new FastlyRedis({ url: "https://b.example.com", token: "a token", backend: "upstash" });
    for (const each of [client, fastly]) {
      await createLimiter({ name: "api", policy: fixedWindow({ limit: 1, window: "1m" }), store: redisStore(each) }).consume("key");
    }
    expect(asked).toEqual([
      { cache: "no-store", backend: undefined },
      { cache: undefined, backend: "upstash" },
    ]);
  } finally {
    vi.unstubAllGlobals();
  }
});
