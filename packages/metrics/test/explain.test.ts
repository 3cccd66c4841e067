import { fixedWindow, slidingWindowLog } from "@floodgate/core";
import { encodeKey } from "@floodgate/core/store";
import { rateLimit } from "@floodgate/fetch";
import { explainHeader } from "@floodgate/metrics/decisions";
import { memoryStore } from "@floodgate/store-memory";
import fc from "fast-check";
import { parseList, Token } from "structured-headers";
import { afterEach, expect, it } from "vitest";
import { runs } from "../../../test/runs.js";

let stop: (() => void) | undefined;
afterEach(() => stop?.());

const nowMs = Date.UTC(2030, 0, 1, 0, 0, 10);
const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.constantFrom('"', "\\", ";a=1", ", ", "…", "\r\n", "\ud800", "(a,b)"),
);
const rule = fc.record({
  name: fc.stringMatching(/^[ -~]{1,20}$/),
  limit: fc.integer({ min: 0, max: 3 }),
  isLog: fc.boolean(),
  cost: fc.integer({ min: 1, max: 4 }),
  isShadow: fc.boolean(),
  path: fc.constantFrom("/a", "/b", undefined),
  key: fc.nat(3),
});
const rules = fc.uniqueArray(rule, { selector: ({ name }) => name, minLength: 1, maxLength: 5 });

it("a structured-field parser reads of RateLimit-Explain what the decisions say, whatever names and keys there are", async () => {
  await fc.assert(
    fc.asyncProperty(
      rules,
      fc.array(text, { minLength: 4, maxLength: 4 }),
      fc.array(fc.constantFrom("/a", "/b"), { minLength: 1, maxLength: 5 }),
      async (given, keys, paths) => {
        const limit = rateLimit({
          onEvent: () => undefined,
          store: memoryStore({ clock: () => nowMs, maxKeys: 100 }),
          rules: given.map(({ name, limit, isLog, cost, isShadow, path, key }) => ({
            name,
            policy: (isLog ? slidingWindowLog : fixedWindow)({ limit, window: "1m" }),
            cost: () => cost,
            key: () => keys[key] as string,
            mode: isShadow ? ("shadow" as const) : ("enforce" as const),
            ...(path !== undefined && { match: { path } }),
          })),
        });
        stop = explainHeader(() => true, { showKeys: true });
        for (const path of paths) {
          const { response, headers, decision } = await limit.check(new Request(`http://h${path}`), { ip: "203.0.113.9" });
          const header = headers.get("ratelimit-explain");
          if (decision === undefined) continue;
          const items = parseList(header ?? "");
          const checked = decision.decisions ?? [];
          const expected = checked.map((made) => {
            const { isShadow, key } = given.find(({ name }) => name === made.name) as (typeof given)[number];
            const shown = encodeKey(keys[key] as string)
              .replaceAll("…", "...")
              .replace(/[^ -~]/g, "?");
            return {
              name: made.name,
              result: made.allowed ? "allowed" : isShadow ? "shadow-limited" : "limited",
              decides: made.name === decision.name,
              key: made.allowed && response !== undefined ? undefined : shown,
              cost: made.cost,
              limit: made.limit,
              used: made.limit - made.remaining,
              remaining: made.remaining,
              retry: Number.isFinite(made.retryAfterMs) ? Math.ceil(made.retryAfterMs / 1000) : "never",
            };
          });
          const found = items.slice(0, checked.length).map(([name, parameters]) => {
            const read = (parameter: string) => {
              const value = parameters.get(parameter);
              return value instanceof Token ? value.toString() : value;
            };
            return {
              name,
              result: read("result"),
              decides: read("decides") === true,
              key: read("key"),
              cost: read("cost"),
              limit: read("limit"),
              used: read("used"),
              remaining: read("remaining"),
              retry: read("retry"),
            };
          });
          expect(found).toEqual(expected);
          const others = items.slice(checked.length).map(([name, parameters]) => [name, `${parameters.get("not")}`]);
          const unchecked = given.filter(({ name }) => !checked.some((made) => made.name === name));
          expect(new Map(others as [string, string][]).size).toBe(unchecked.length);
          for (const { name, path: own } of unchecked) {
            const because = others.find(([other]) => other === name)?.[1];
            expect([name, because]).toEqual([name, own !== undefined && own !== path ? "path" : expect.any(String)]);
          }
        }
        stop();
        limit.close();
      },
    ),
    runs(500),
  );
});
