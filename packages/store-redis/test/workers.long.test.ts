import { join } from "node:path";
import type { Decision } from "@floodgate/core";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import { Miniflare } from "miniflare";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { bundled } from "../../store-database/test/workers.js";
import { startRestServer } from "./rest-server.js";

// Requests of one isolate of Cloudflare's runtime, at the same time.

const token = "a token";
const timeout = 60_000;

let redis: RedisServer;
let rest: Awaited<ReturnType<typeof startRestServer>>;
let code: string;
/** Awaited before a command runs. */
let before: (command: readonly string[]) => unknown;
let sent: (readonly string[])[];

beforeAll(async () => {
  code = await bundled({ file: join(__dirname, "cloudflare-worker.mjs") });
  redis = await startRedis();
  rest = await startRestServer(redis.port, token, (command) => {
    sent.push(command);
    return before(command);
  });
}, timeout);
afterAll(async () => {
  await rest?.stop();
  await redis?.stop();
});

const yearly = (limit: number, name: string) => ({ name, policy: { algorithm: "fixed-window", limit, window: "365d" } });

/** Whether a command is an announcement. */
const announces = (command: readonly string[]): boolean => command.some((argument) => argument.endsWith(":changes"));

describe.each([
  ["with Node compatibility", ["nodejs_compat"]],
  ["without it", []],
  // As before 2024-10-14, when a request could not even learn of what another one has resolved.
  ["where requests share no promises", ["no_handle_cross_request_promise_resolution"]],
])("a Worker %s", (_, compatibilityFlags) => {
  let worker: Miniflare;
  beforeEach(async () => {
    before = () => undefined;
    sent = [];
    const keys = new Redis(redis.port);
    await keys.flushall();
    await keys.quit();
    worker = new Miniflare({
      modules: [{ type: "ESModule" as const, path: "worker.mjs", contents: code }],
      compatibilityDate: "2026-04-01",
      compatibilityFlags,
      bindings: { UPSTASH_REDIS_REST_URL: rest.url, UPSTASH_REDIS_REST_TOKEN: token },
    });
  });
  afterEach(() => worker.dispose());

  async function ask(call: string, question: object): Promise<Decision> {
    const response = await worker.dispatchFetch(`http://localhost/${call}`, { method: "POST", body: JSON.stringify(question) });
    return (await response.json()) as Decision;
  }

  /** Asks so many times at once. */
  const askAll = (call: string, times: number, question: object): Promise<Decision[]> =>
    Promise.all(Array.from({ length: times }, () => ask(call, question)));

  const outcomes = (decisions: readonly Decision[]) => ({
    allowed: decisions.filter(({ allowed }) => allowed).length,
    degraded: decisions.filter(({ degraded }) => degraded).length,
  });

  it("allows exactly the limit of requests that come at once", { timeout }, async () => {
    expect(outcomes(await askAll("consume", 60, { limit: yearly(20, "together"), key: "k" }))).toEqual({ allowed: 20, degraded: 0 });
    // A limit with `lease` is asked for each time, and one without a deny cache too.
    const leasing = { limit: { ...yearly(20, "leased"), lease: true }, options: { denyCache: false }, key: "k" };
    expect(outcomes(await askAll("consume", 60, leasing))).toEqual({ allowed: 20, degraded: 0 });
  });

  it("rejects a denied key without a round trip", { timeout }, async () => {
    const question = { limit: yearly(1, "denied"), key: "k" };
    await ask("consume", question);
    await ask("consume", question);
    const before = sent.length;
    expect(outcomes(await askAll("consume", 10, question))).toEqual({ allowed: 0, degraded: 0 });
    expect(sent.length).toBe(before);
  });

  it("decides several limits in one step", { timeout }, async () => {
    const questions = [
      { limit: yearly(5, "each"), key: "k" },
      { limit: yearly(8, "all"), key: "global" },
    ];
    expect(outcomes(await askAll("both", 20, { questions }))).toMatchObject({ allowed: 5 });
    expect((await ask("consume", questions[1] as object)).remaining).toBe(2);
  });

  it("a request that ends before its decision holds up no other", { timeout }, async () => {
    const question = { limit: yearly(1000, "abandoned"), key: "k" };
    const decisions = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        ask(i % 2 === 0 ? "abandon" : "consume", question).then((decision) => (i % 2 ? [decision] : [])),
      ),
    );
    expect(outcomes(decisions.flat())).toEqual({ allowed: 20, degraded: 0 });
  });

  it("a reset and a refund after the response take effect, and are announced", { timeout }, async () => {
    const question = { limit: yearly(1, "freed"), key: "k" };
    await ask("consume", question);
    expect((await ask("consume", question)).allowed).toBe(false);
    await ask("reset", question);
    // Only who has read announcements before is told.
    expect(sent.filter(announces).length).toBeGreaterThan(0);
    expect((await ask("refundLater", question)).allowed).toBe(true);
    await expect.poll(async () => (await ask("consume", question)).allowed, { timeout }).toBe(true);
  });

  it("a reset waits for its announcement", { timeout }, async () => {
    let answered = false;
    before = async (command) => {
      if (!announces(command)) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
      answered = true;
    };
    await ask("reset", { limit: yearly(1, "announced"), key: "k" });
    expect(answered).toBe(true);
  });

  it("a probe, and a report of the fallback's usage, that ends with its request does not keep the store away", { timeout }, async () => {
    const question = { limit: yearly(10, "outage"), key: "k", timeoutMs: 500, fallsBack: true };
    before = () => {
      throw new Error("Redis is down");
    };
    for (let i = 0; i < 6; i++) expect((await ask("consume", question)).degraded).toBe(true);
    // Redis is back, but the request that reports to it has gone.
    const never = new Promise(() => undefined);
    before = () => never;
    await expect.poll(() => ask("abandon", { ...question, afterMs: 100 }).then(() => sent.length > 5), { timeout }).toBe(true);
    before = () => undefined;
    await expect.poll(async () => (await ask("consume", question)).degraded, { timeout }).toBe(false);
    expect((await ask("consume", question)).remaining).toBeLessThan(4);
  });
});
