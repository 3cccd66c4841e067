import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../../test/runs.js";
import { RateLimit, type RateLimitOptions, type RequestReader } from "../../src/adapter.js";
import type { Decision } from "../../src/decide/decision.js";
import { type Explanation, type PlainRule, RuleExplainer, type RuleSet } from "../../src/rules.js";
import type { Check, Store } from "../../src/store.js";

interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly ip: string | undefined;
}

const reader: RequestReader<Request> = {
  method: ({ method }) => method,
  path: ({ path }) => path,
  header: ({ headers }, name) => headers[name],
  remoteAddress: ({ ip }) => ip,
  clientIp: ({ ip }) => ip,
  trustsProxy: () => true,
  route: () => undefined,
};

const options: RateLimitOptions<Request, string> = {
  keys: { user: ({ headers }) => headers["x-user"] },
  costs: { items: ({ headers }) => Number(headers["x-items"] ?? 1) },
  plan: ({ headers }) => headers["x-plan"],
};

const get: Request = { method: "GET", path: "/", headers: {}, ip: "203.0.113.9" };

function explain(rules: readonly PlainRule[], request: Partial<Request>, exempt?: RuleSet["exempt"]): Promise<Explanation<Request>[]> {
  const set = exempt === undefined ? { rules } : { rules, exempt };
  return new RuleExplainer("test", set, options, reader).explain({ ...get, ...request });
}

/** A store that records its calls and allows everything. */
class AllowingStore implements Store<"sync"> {
  readonly mode = "sync";
  asked: readonly Check[] = [];

  consumeAll(checks: readonly Check[]): Decision[] {
    this.asked = checks;
    return checks.map(({ limit, cost }) => ({
      allowed: true,
      limit: limit.policy.quota,
      remaining: 1,
      used: limit.policy.quota - 1,
      retryAfterMs: 0,
      resetAfterMs: 0,
      delayMs: 0,
      cost,
      atMs: 0,
      name: limit.name,
      policy: limit.policy,
      degraded: false,
    }));
  }

  consume(limit: Check["limit"], key: string, cost: number): Decision {
    return this.consumeAll([{ limit, key, cost }])[0] as Decision;
  }

  peek(limit: Check["limit"], key: string): Decision {
    return this.consume(limit, key, 1);
  }

  settle(): number {
    return 0;
  }

  reset(): void {}

  block(): never {
    throw new Error("not expected");
  }

  unblock(): void {}

  keyState(): never {
    throw new Error("not expected");
  }
}

const base = { limit: 10, window: "1m" } as const;
const why = ({ says, ...rest }: Explanation<Request>) => {
  if ("because" in rest) return rest.because;
  return "by" in rest ? `${says} by ${rest.by.name}` : says;
};

describe("why a rule does not count a request", () => {
  it.each<[string, Partial<PlainRule>, Partial<Request>]>([
    ["method", { match: { method: "POST", path: "/posts" } }, { path: "/posts" }],
    ["path", { match: { method: "GET", path: "/posts" } }, { path: "/users" }],
    ["header", { match: { path: "/posts", header: { "x-a": "1" } } }, { path: "/posts" }],
    ["descriptor", { match: { domain: "edge" } }, {}],
    ["exempt", { exempt: { ips: ["203.0.113.0/24"] } }, {}],
    ["exempt", { key: "user", exempt: { keys: ["ann"] } }, { headers: { "x-user": "ann" } }],
    ["exempt", { key: "user", exempt: { ips: ["203.0.113.9"] } }, {}],
    ["free", { cost: 0 }, {}],
    ["free", { cost: "items" }, { headers: { "x-items": "0" } }],
    ["no-key", { key: "user", onMissingKey: "skip" }, {}],
    ["no-key", { key: "user", mode: "shadow", onMissingKey: "reject" }, {}],
    ["counts", { key: "user", mode: "shadow" }, {}],
    ["no-key", { mode: "shadow" }, { ip: undefined }],
    ["shadow-fault", { key: "route", mode: "shadow" }, {}],
    ["missing-key", { key: "user", onMissingKey: "reject" }, {}],
    ["ambiguous-path", { ambiguousPath: "reject" }, { path: "/a%5c..//b" }],
    ["fails", { key: "user", onMissingKey: "error" }, {}],
    ["fails", { key: "user" }, { ip: undefined }],
    ["fails", {}, { ip: undefined }],
    ["counts", { key: "user" }, {}],
    ["counts", { match: { method: "GET", path: "/posts/:id", header: { "x-a": true } } }, { path: "/Posts/1/", headers: { "x-a": "" } }],
  ])("%s: %o", async (expected, rule, request) => {
    const [explanation] = await explain([{ name: "a", ...base, ...rule }], request);
    expect(why(explanation as Explanation<Request>)).toBe(expected);
  });

  it("is the exemption of the whole set, for every rule", async () => {
    const explanations = await explain(
      [
        { name: "a", ...base },
        { name: "b", ...base, key: "global" },
      ],
      {},
      { ips: ["203.0.113.9"] },
    );
    expect(explanations.map(why)).toEqual(["exempt", "exempt"]);
  });
});

describe("one rule decides for all matching rules:", () => {
  const posts: PlainRule = { name: "posts", ...base, match: { method: "POST" } };
  const perIp: PlainRule = { name: "per-ip", ...base };
  const rejecting: PlainRule = { name: "rejecting", ...base, key: "user", onMissingKey: "reject" };
  const failing: PlainRule = { name: "failing", ...base, key: "user", onMissingKey: "error" };

  it.each<[string, PlainRule[], string[]]>([
    ["that rejects", [posts, perIp, rejecting], ["method", "overruled by rejecting", "missing-key"]],
    ["that fails", [failing, perIp, posts], ["fails", "overruled by failing", "method"]],
    ["that fails, also where another rejects", [rejecting, failing, perIp], ["overruled by failing", "fails", "overruled by failing"]],
    [
      "that rejects the path, also where another fails",
      [failing, { ...perIp, ambiguousPath: "reject" }, rejecting],
      ["overruled by per-ip", "ambiguous-path", "missing-key"],
    ],
    [
      "the first of those that reject",
      [rejecting, { ...rejecting, name: "b" }, perIp],
      ["missing-key", "missing-key", "overruled by rejecting"],
    ],
  ])("%s", async (_, rules, expected) => {
    expect((await explain(rules, { path: "/a%5c..//b" })).map(why)).toEqual(expected);
  });
});

const ruleOf = fc.record(
  {
    match: fc.record(
      {
        method: fc.constantFrom("GET", "POST"),
        path: fc.constantFrom("/a", "/a/:id", "/*"),
        header: fc.constantFrom({ "x-user": true }, { "x-user": false }, { "x-plan": "pro" }),
      },
      { requiredKeys: [] },
    ),
    key: fc.constantFrom("ip", "user", "global", "header:x-plan"),
    onMissingKey: fc.constantFrom("skip" as const, "reject" as const, "error" as const),
    plans: fc.constant({ pro: { limit: 100 } }),
    cost: fc.constantFrom(0, 2, "items"),
    mode: fc.constantFrom("enforce" as const, "shadow" as const),
    ambiguousPath: fc.constantFrom("count" as const, "reject" as const),
    exempt: fc.constantFrom({ ips: ["10.0.0.0/8"] }, { keys: ["ann"] }),
  },
  { requiredKeys: [] },
);
const sets = fc
  .array(ruleOf, { minLength: 1, maxLength: 5 })
  .map((rules): PlainRule[] => rules.map((rule, i) => ({ name: `r${i}`, ...base, ...rule })));
const requests = fc.record({
  method: fc.constantFrom("GET", "HEAD", "POST"),
  path: fc.constantFrom("/", "/a", "/A/1?b=c", "/a//1", "/b%5c../a"),
  headers: fc.record(
    { "x-user": fc.constantFrom("ann", "bob"), "x-plan": fc.constantFrom("pro", "free"), "x-items": fc.constantFrom("0", "3") },
    { requiredKeys: [] },
  ),
  ip: fc.constantFrom("203.0.113.9", "10.1.2.3", undefined),
});

it("agrees with the middleware on key, policy and cost, or on why a rule does not count", async () => {
  await fc.assert(
    fc.asyncProperty(sets, requests, async (rules, request) => {
      const store = new AllowingStore();
      const limit = new RateLimit(
        "test",
        { ...options, rules: { current: { rules }, subscribe: () => () => {} }, store },
        [],
        reader,
        () => store,
      );
      const explanations = await explain(rules, request);
      const counted = explanations.flatMap((one) => (one.says === "counts" ? [one.check] : []));
      const decided = (async () => limit.decide(request))();
      if (explanations.some(({ says }) => says === "fails")) await expect(decided).rejects.toThrow();
      else expect((await decided).action).toBe(explanations.some(({ says }) => says === "rejects") ? "reject" : "pass");
      const told = ({ limit: { name, policy }, key, cost }: Check) => [name, policy.quota, key, cost];
      expect(store.asked.map(told)).toEqual(counted.map(told));
    }),
    runs(500),
  );
});
