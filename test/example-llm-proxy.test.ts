import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { calendarWindow, createLimiter } from "../packages/core/src/index.js";
import { redisStore } from "../packages/store-redis/src/index.js";
import { type RedisServer, startRedis } from "../tools/test-servers/src/index.js";

const server = join(import.meta.dirname, "../examples/llm-proxy/server.mjs");
const { Redis } = createRequire(server)("ioredis");

const monthly = { limit: 5e6, per: "month", timeZone: "Europe/Berlin" } as const;
/** What the log says once the units of a request have been settled. */
const lines: string[] = [];
let redis: RedisServer;
let client: Parameters<typeof redisStore>[0] & { disconnect(): void };
let url = "";
let stop: () => Promise<unknown>;

beforeAll(async () => {
  redis = await startRedis();
  const REDIS_URL = `redis://${redis.host}:${redis.port}`;
  client = new Redis(REDIS_URL);
  const child = spawn(process.execPath, [server], { env: { ...process.env, REDIS_URL, PORT: "0" }, stdio: ["ignore", "pipe", "inherit"] });
  const closed = once(child, "close");
  stop = () => {
    child.kill();
    return closed;
  };
  const log = createInterface(child.stdout);
  log.on("line", (line) => lines.push(line));
  await once(log, "line");
  url = /http:\S+/.exec(lines.shift() as string)?.[0] as string;
}, 60_000);

afterAll(async () => {
  await stop();
  client.disconnect();
  await redis.stop();
});

const messages = [{ role: "user", content: "What is a rate limit?" }];

function ask(model: string, { path = "/v1/chat/completions", signal = null as AbortSignal | null } = {}) {
  return post(path, "key-berlin", { model, messages, max_tokens: 60 }, signal);
}

function post(path: string, key: string, body: object, signal: AbortSignal | null = null): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body), signal });
}

/** What a tenant has left of its budget in Redis. Held units are not left. */
const budgetLeft = async (): Promise<number> => {
  const policy = calendarWindow(monthly);
  const budget = createLimiter({ name: "budget", policy, hold: "10m", store: redisStore(client), timeoutMs: 10_000 });
  return (await budget.peek("berlin")).remaining;
};

/** Waits until both limits of a request have been settled or refunded. */
async function settled(): Promise<string[]> {
  await vi.waitFor(() => expect(lines).toHaveLength(2), { timeout: 20_000 });
  return lines.splice(0).sort((a, b) => (a.split(" ").pop() as string).localeCompare(b.split(" ").pop() as string));
}

const charged = (tokens: number, dollars: number): string[] => [
  `berlin is charged ${dollars} of budget`,
  `berlin is charged ${tokens} of tokens`,
];

test.each(["/v1/chat/completions", "/v1/messages"])("a stream of %s is charged the usage that it says at its end", async (path) => {
  const before = await budgetLeft();
  const response = await ask("works", { path });
  expect(response.status).toBe(200);
  const names = [...(response.headers.get("ratelimit-policy") as string).matchAll(/"(\w+)"/g)].map(([, name]) => name);
  expect(names).toEqual(["requests", "streams", "tokens"]);
  expect(await response.text()).toContain("work.");
  expect(await settled()).toEqual(charged(150, 100 * 3 + 50 * 15));
  expect(before - (await budgetLeft())).toBe(1050);
});

const input = Math.ceil(JSON.stringify(messages).length / 4);

test("a client that hangs up is charged the pieces that it was sent", async () => {
  const before = await budgetLeft();
  const abort = new AbortController();
  const { body } = await ask("waits", { signal: abort.signal });
  let text = "";
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    if (text.includes("work.")) break;
  }
  abort.abort();
  expect(await settled()).toEqual(charged(input + 3, input * 3 + 3 * 15));
  expect(before - (await budgetLeft())).toBe(input * 3 + 3 * 15);
});

test("an upstream that hangs up in the middle is charged as far as it came", async () => {
  await expect((await ask("hangs-up")).text()).rejects.toThrow();
  expect(await settled()).toEqual(charged(input + 3, input * 3 + 3 * 15));
});

test("an upstream that fails is charged nothing but a request", async () => {
  const before = await budgetLeft();
  expect((await ask("fails")).status).toBe(502);
  expect(await settled()).toEqual([`berlin gets back ${input * 3 + 60 * 15} of budget`, `berlin gets back ${input + 60} of tokens`]);
  expect(await budgetLeft()).toBe(before);
});

test("the sixth stream at once is rejected, and takes nothing of the other limits", async () => {
  const abort = new AbortController();
  const open = await Promise.all(Array.from({ length: 5 }, () => ask("waits", { signal: abort.signal })));
  expect(open.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  const before = await budgetLeft();
  const sixth = await ask("works");
  expect([sixth.status, sixth.headers.get("retry-after")]).toEqual([429, "1"]);
  expect(await sixth.json()).toMatchObject({ "violated-policies": ["streams"] });
  expect(await budgetLeft()).toBe(before);
  abort.abort();
  await vi.waitFor(() => expect(lines).toHaveLength(10), { timeout: 20_000 });
  lines.splice(0);
  const again = await ask("works");
  expect(again.status).toBe(200);
  await again.text();
  await settled();
});

test("a budget that two requests of the README use up begins again with the tenant's own month", async () => {
  // Kiritimati is 14 hours ahead of UTC, without daylight saving time.
  const ahead = 14 * 3_600_000;
  const untilNextMonth = async (): Promise<number> => {
    const [seconds] = (await redis.command("TIME")) as string[];
    const local = new Date(Number(seconds) * 1000 + ahead);
    return Math.ceil((Date.UTC(local.getUTCFullYear(), local.getUTCMonth() + 1) - local.getTime()) / 1000);
  };
  const readme = readFileSync(join(server, "../README.md"), "utf8");
  const [, body] = /--json '(.*)'/.exec(readme) as unknown as [string, string];
  const request = () => post("/v1/chat/completions", "key-kiritimati", JSON.parse(body));
  for (let i = 0; i < 2; i++) {
    const response = await request();
    expect(response.status).toBe(200);
    await response.text();
    await settled();
  }
  const response = await request();
  const latest = await untilNextMonth();
  expect(response.status).toBe(429);
  expect(await response.json()).toMatchObject({ "violated-policies": ["budget"] });
  const retryAfter = Number(response.headers.get("retry-after"));
  expect(retryAfter).toBeGreaterThanOrEqual(latest - 1);
  expect(retryAfter).toBeLessThan(latest + 60);
  expect(response.headers.get("ratelimit-policy")).not.toContain("budget");
});
