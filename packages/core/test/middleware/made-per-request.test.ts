import { expect, it } from "vitest";
import { memoryStore } from "../../../store-memory/src/index.js";
import { RateLimit } from "../../src/adapter.js";
import type { FloodgateEvent, Store } from "../../src/index.js";
import { reader } from "../reader.js";

interface Making {
  readonly store?: Store;
  /** How often each request passes the middleware. */
  readonly passes?: number;
  /** Whether the middlewares are made when the app is set up. */
  readonly isEarly?: boolean;
}

/** An app whose tenants get a middleware each during their first request. `requests`: how many each tenant makes. */
async function warningsOf(requests: readonly number[], { store, passes = 1, isEarly = false }: Making = {}): Promise<string[]> {
  const [app, codes]: [object, string[]] = [{}, []];
  const onEvent = (event: FloodgateEvent) => event.type === "warning" && codes.push(event.code);
  const options = { limit: 100, window: "1m", onEvent, ...(store && { store }) } as const;
  for (const count of requests) {
    const limit = new RateLimit("rateLimit", options, [], { ...reader, app: () => app }, (own) => memoryStore({ maxKeys: 10, ...own }));
    if (isEarly) await Promise.resolve();
    for (let i = 0; i < count; i++) {
      const request = {};
      for (let pass = 0; pass < passes; pass++) await limit.decide(request);
    }
    limit.close();
  }
  return codes;
}

const once = (count: number): number[] => Array.from({ length: count }, () => 1);
const warned = ["FLOODGATE_MADE_PER_REQUEST"];

it("an app whose requests each make a middleware is warned at the tenth, but one that keeps a middleware is not", async () => {
  expect(await warningsOf(once(9))).toEqual([]);
  expect(await warningsOf(once(30))).toEqual(warned);
  expect(await warningsOf([...once(8), 2, ...once(9)])).toEqual([]);
  expect(await warningsOf([...once(8), 2, ...once(10)])).toEqual(warned);
});

it("the app is warned too if requests pass the middleware twice, but not if they share a store, or if it is made before its first request", async () => {
  expect(await warningsOf(once(30), { passes: 2 })).toEqual(warned);
  expect(await warningsOf(once(30), { store: memoryStore({ maxKeys: 10 }) })).toEqual([]);
  expect(await warningsOf(once(30), { isEarly: true })).toEqual([]);
});

it("the proxy setting is looked at in the first thousand requests, and not after them", async () => {
  let looks = 0;
  const trustsProxy = () => ++looks > 0;
  const forwarded = { ...reader, header: () => "192.0.2.2", trustsProxy };
  const limit = new RateLimit("rateLimit", { limit: 9999, window: "1m" }, [], forwarded, (own) => memoryStore({ maxKeys: 10, ...own }));
  for (let i = 0; i < 3000; i++) await limit.decide({});
  limit.close();
  expect([looks >= 1000, looks < 1010]).toEqual([true, true]);
});
