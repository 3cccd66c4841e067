import { createLimiter, fixedWindow } from "@floodgate/core";
import { rateLimit } from "@floodgate/hono";
import { memoryStore } from "@floodgate/store-memory";
import fc from "fast-check";
import { Hono } from "hono";
import { afterEach, describe, expect, it, vi } from "vitest";
import { anyCharacter } from "../../conformance/test/characters.js";
import { startExporters } from "./exporters.js";

const policy = fixedWindow({ limit: 1, window: "365d" });

const printable = fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code));
const hostile = fc.constantFrom('"', "\\", "{", "}", "#", ",", "=", "\\n", '"} 1', "# EOF");
const ruleName = fc.string({ unit: fc.oneof(hostile, printable), minLength: 1, maxLength: 20 });

/** Stands in each key and path, and must not come out again. */
const secret = "s3cr3t";
const key = fc.string({ unit: anyCharacter, maxLength: 20 }).map((text) => `${text}${secret}\n"}${text}`);

/** The labels of each sample of an exposition, which must follow the grammar. */
function labelsIn(exposition: string): Record<string, string>[] {
  return exposition.split("\n").flatMap((line) => {
    if (line === "" || /^# (HELP|TYPE) [a-z_]+ ./.test(line)) return [];
    const [, labels = ""] = /^[a-z_]+(?:\{(.*)\})? (?:[\d.e+-]+|\+Inf)$/.exec(line) ?? expect.fail(`no sample: ${line}`);
    const pairs = [...labels.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"(?:,|$)/g)];
    expect(pairs.map(([pair]) => pair).join("")).toBe(labels);
    const plain = (text: string) => text.replace(/\\(.)/g, (_, character) => (character === "n" ? "\n" : character));
    return [Object.fromEntries(pairs.map(([, name, value = ""]) => [name as string, plain(value)]))];
  });
}

it("a rule's name comes out as it is, however hostile, and no key, path or address ever does", async () => {
  const address = "198.51.100.77";
  await fc.assert(
    fc.asyncProperty(ruleName, key, fc.webPath(), async (name, key, path) => {
      const exporters = startExporters();
      const limiter = createLimiter({ name, policy, store: memoryStore({ maxKeys: 1 }) });
      const middleware = rateLimit({
        rules: [
          { name, key: () => [key, "a"], policy, ban: { after: 1, within: "1m", for: "1h" } },
          { name: `${name}-`, key: "ip", policy, mode: "shadow" },
        ],
        clientIp: () => address,
        exempt: { keys: [secret] },
      });
      const app = new Hono().use(middleware).get("*", (c) => c.text("ok"));
      try {
        limiter.refund(key, limiter.consume(key));
        for (let i = 0; i < 3; i++) {
          limiter.consume(`${key}${i}`);
          await app.request(`/${secret}${path.slice(1)}`, { headers: { [secret]: secret } });
        }
        const text = await exporters.registry.metrics();
        expect(new Set(labelsIn(text).map(({ rule }) => rule))).toEqual(new Set([undefined, name, `${name}-`]));
        const figures = await exporters.openTelemetry();
        expect(figures).toEqual(await exporters.prometheus());
        expect(Object.keys(figures)).toEqual(expect.arrayContaining(["requests", "bans", "refunds", "evictions"]));
        for (const shown of [text, JSON.stringify(figures)]) {
          expect(shown).not.toContain(secret);
          expect(shown).not.toContain(address);
        }
      } finally {
        middleware.close();
        limiter.close();
        await exporters.stop();
      }
    }),
    { numRuns: 30 },
  );
});

describe("more rules than maxRules", () => {
  afterEach(() => vi.restoreAllMocks());

  it("are measured together as other, have no limit, and are told once", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const exporters = startExporters({ maxRules: 2 });
    const store = memoryStore();
    const limiters = Array.from({ length: 50 }, (_, i) => createLimiter({ name: `user-${i}`, policy, store }));
    for (const limiter of limiters) limiter.consume("k");
    const figures = await exporters.openTelemetry();
    expect(await exporters.prometheus()).toEqual(figures);
    expect(figures.requests).toEqual({ "user-0 allowed": 1, "user-1 allowed": 1, "other allowed": 48 });
    expect(figures.limit).toEqual({ "user-0": 1, "user-1": 1 });
    for (const limiter of limiters) limiter.close();
    await exporters.stop();
    expect(warn.mock.calls.map(([message]) => message)).toEqual([
      expect.stringMatching(/FLOODGATE_TOO_MANY_RULES: Metrics tell 2 rules apart/),
    ]);
  });

  it("are those after 500 by default", async () => {
    vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const exporters = startExporters();
    const store = memoryStore();
    const limiters = Array.from({ length: 503 }, (_, i) => createLimiter({ name: `rule-${i}`, policy, store }));
    for (const limiter of limiters) limiter.consume("k");
    const { requests = {} } = await exporters.prometheus();
    expect(Object.keys(requests)).toHaveLength(501);
    expect(requests["other allowed"]).toBe(3);
    for (const limiter of limiters) limiter.close();
    await exporters.stop();
  });
});
