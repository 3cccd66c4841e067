import assert from "node:assert/strict";
import { afterEach, describe, expect, it, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import type { Outcome, RateLimit, RateLimitOptions } from "../../src/adapter.js";
import { reader } from "../reader.js";

afterEach(() => {
  vi.restoreAllMocks();
});

/** The console output after a response, in a fresh module. */
async function told(options: Pick<RateLimitOptions<object>, "settle" | "refundWhen">): Promise<string[]> {
  const warnings: string[] = [];
  vi.spyOn(console, "warn").mockImplementation((text: string) => void warnings.push(text));
  vi.resetModules();
  const { RateLimit: Fresh } = (await import("../../src/adapter.js")) as { RateLimit: typeof RateLimit };
  const limit = new Fresh("test", { limit: 5, window: "1m", ...options }, [], reader, () => simpleStore());
  const { afterResponse } = limit.decide({}) as Outcome;
  await afterResponse?.(200);
  return warnings;
}

describe("failures after the response do not affect requests, and are logged:", () => {
  it.each<[string, unknown, string]>([
    ["an error", new Error("mine"), "mine"],
    ["an error whose code is a symbol", Object.assign(new Error("mine"), { code: Symbol("mine") }), "mine"],
    ["an object with an invalid message", { message: Object.create(null) }, "an object with message"],
    ["an object without a prototype", Object.create(null), "an empty object"],
    ["an object that throws when it is read", new Proxy({}, { get: () => assert.fail() }), "what was thrown cannot be read."],
    ["a string", "mine", '"mine"'],
    ["a symbol", Symbol("mine"), "Symbol(mine)"],
    ["undefined", undefined, "undefined"],
    ["null", null, "null"],
  ])("%s", async (_, fault, text) => {
    const fail = (): never => {
      throw fault;
    };
    for (const [what, options] of [
      ['under "default" could not be settled', { settle: fail }],
      ['under "default" could not be settled', { settle: async () => fail() }],
      ["could not be refunded", { refundWhen: fail }],
      ["could not be refunded", { refundWhen: async () => fail() }],
    ] as const) {
      const code = what.endsWith("settled") ? "settle-failed" : "refund-failed";
      expect(await told(options)).toEqual([`[floodgate] ${code}: a request ${what}: ${text} Set \`onEvent\` to get an event each time.`]);
    }
  });
});
