import { expect, it } from "vitest";
import { memoryStore } from "../../../store-memory/src/index.js";
import { RouteLimits } from "../../src/adapter.js";
import { reader } from "../reader.js";

const limit = { limit: 5, window: "1m" } as const;
const policy = { algorithm: "fixed-window", limit: 2, window: "1h" } as const;
const plans = { pro: { limit: 9 } };
const plan = (): string => "pro";
const rule = { name: "own", ...policyOf(3) };

function policyOf(limit: number) {
  return { limit, window: "1m" } as const;
}

it.each<[string, object, object, Record<string, [quota: number, spanMs: number, plans: string[]]>]>([
  ["nothing is as in the app", limit, { key: "global" }, { "GET /a": [5, 60_000, []] }],
  ["a limit takes the window of the app", limit, { limit: 2 }, { "GET /a": [2, 60_000, []] }],
  ["a window takes the limit of the app", limit, { window: "1h" }, { "GET /a": [5, 3_600_000, []] }],
  ["a policy replaces the limit of the app", limit, { policy }, { "GET /a": [2, 3_600_000, []] }],
  ["a limit replaces the policy of the app", { policy }, policyOf(7), { "GET /a": [7, 60_000, []] }],
  ["a limit replaces the plans of the app", { ...limit, plans, plan }, { limit: 2 }, { "GET /a": [2, 60_000, []] }],
  [
    "plans take the limit and the plan of the app",
    { ...limit, plan, plans },
    { plans: { team: { limit: 8 } } },
    { "GET /a": [5, 60_000, ["team"]] },
  ],
  ["rules replace the limit of the app", { ...limit, name: "app", key: "global" }, { rules: [rule] }, { own: [3, 60_000, []] }],
  ["a limit replaces the rules of the app", { rules: [{ ...rule, name: "app" }] }, policyOf(7), { "GET /a": [7, 60_000, []] }],
  ["its name is its own", limit, { name: "own", limit: 2 }, { own: [2, 60_000, []] }],
])("of the options of a route, %s", (_, app, own, expected) => {
  const limits = new RouteLimits<object, object>("rateLimit", app, [], reader, memoryStore);
  const route = limits.of(own, "GET /a");
  const all = route.limit.version.rules.all.map(({ name, fixed, plans }) => [
    name,
    [fixed?.policy.quota, fixed?.policy.spanMs, [...(plans?.keys() ?? [])]],
  ]);
  expect(Object.fromEntries(all)).toEqual(expected);
  limits.close();
  // Both have given their names back.
  expect(() => [
    new RouteLimits<object, object>("rateLimit", { ...app, store: route.limit.store }, [], reader, memoryStore).of(own, "GET /a"),
  ]).not.toThrow();
});
