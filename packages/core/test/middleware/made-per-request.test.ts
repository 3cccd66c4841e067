import { expect, it } from "vitest";
import { memoryStore } from "../../../store-memory/src/index.js";
import { RateLimit } from "../../src/adapter.js";
import { reader } from "../reader.js";

/** An app whose tenants get a middleware each during their first request. `requests`: how many each tenant makes. */
async function warningsOf(requests: readonly number[]): Promise<string[]> {
  const [app, codes]: [object, string[]] = [{}, []];
  const onEvent = (event: { readonly type: string; readonly code?: string }) =>
    event.type === "warning" && codes.push(event.code as string);
  for (const count of requests) {
    const options = { limit: 100, window: "1m", onEvent } as const;
    const limit = new RateLimit("rateLimit", options, [], { ...reader, app: () => app }, (own) => memoryStore({ maxKeys: 10, ...own }));
    for (let i = 0; i < count; i++) await limit.decide({});
    limit.close();
  }
  return codes;
}

it("an app whose requests each make a middleware is warned at the tenth, but one that keeps a middleware is not", async () => {
  const once = (count: number) => Array.from({ length: count }, () => 1);
  expect(await warningsOf(once(9))).toEqual([]);
  expect(await warningsOf(once(30))).toEqual(["FLOODGATE_MADE_PER_REQUEST"]);
  expect(await warningsOf([...once(8), 2, ...once(9)])).toEqual([]);
  expect(await warningsOf([...once(8), 2, ...once(10)])).toEqual(["FLOODGATE_MADE_PER_REQUEST"]);
});
