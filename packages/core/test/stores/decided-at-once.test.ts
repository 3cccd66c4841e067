import { describe, expect, it } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { RateLimit } from "../../src/adapter.js";
import { consumeAll, createLimiter, fixedWindow, type Store } from "../../src/index.js";
import { reader } from "../reader.js";

const policy = fixedWindow({ limit: 1, window: "365d" });

/** An asynchronous store that decides at once. */
function quickStore(): Store<"async"> {
  return { ...simpleStore(), mode: "async" } as unknown as Store<"async">;
}

describe("an asynchronous store that decides at once", () => {
  it("makes limiters return promises all the same", async () => {
    const limiter = createLimiter({ name: "api", policy, store: quickStore() });
    const answers = [limiter.consume("a"), limiter.peek("a"), consumeAll([{ limiter, key: "b" }])];
    for (const answer of answers) expect(answer).toBeInstanceOf(Promise);
    expect(await Promise.all(answers)).toMatchObject([{ allowed: true }, { allowed: false }, { allowed: true }]);
  });

  it("makes no promise in a middleware, of one rule or several", () => {
    const one = new RateLimit("test", { policy, store: quickStore() }, [], reader, () => simpleStore());
    const rules = ["x", "y"].map((name) => ({ name, key: "global", policy }));
    const several = new RateLimit("test", { rules, store: quickStore() }, [], reader, () => simpleStore());
    for (const limit of [one, several]) {
      expect([limit.decide({}), limit.decide({})]).toMatchObject([{ action: "pass" }, { action: "reject" }]);
    }
  });

  it("that fails at once makes limiters return a degraded decision by promise, and a middleware pass at once", async () => {
    const fails = (): never => {
      throw new Error("away");
    };
    const store = { ...quickStore(), consume: fails, consumeAll: fails, peek: fails } as Store<"async">;
    const limiter = createLimiter({ name: "api", policy, store, onEvent: () => undefined });
    const answer = limiter.consume("a");
    expect(answer).toBeInstanceOf(Promise);
    expect(await answer).toMatchObject({ allowed: true, degraded: true });
    const limit = new RateLimit("test", { policy, store, onEvent: () => undefined }, [], reader, () => simpleStore());
    expect(limit.decide({})).toMatchObject({ action: "pass", decision: { degraded: true } });
  });
});
