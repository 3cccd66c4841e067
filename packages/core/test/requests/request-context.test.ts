import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { decisionOf, type KeyInfo, RateLimit, type RateLimitOptions, type RequestReader } from "../../src/adapter.js";
import { type Decision, fixedWindow, type Limiter, type RuleSource } from "../../src/index.js";
import type { PlainRule, RuleUser } from "../../src/rules.js";

/** What an app may change on a request between two middlewares. */
interface Request {
  method: string;
  path: string;
  user?: string;
  ip: string;
}

const reader: RequestReader<Request> = {
  method: ({ method }) => method,
  path: ({ path }) => path,
  header: () => undefined,
  remoteAddress: ({ ip }) => ip,
  clientIp: ({ ip }) => ip,
  trustsProxy: () => true,
  route: () => undefined,
};

const get = (): Request => ({ method: "GET", path: "/", ip: "192.0.2.1" });
const limitOf = (options: RateLimitOptions<Request, string>) => new RateLimit("test", options, [], reader, () => simpleStore());
const ten = fixedWindow({ limit: 10, window: "365d" });

/** The number of requests that a rule has counted. */
function counted({ version }: RateLimit<Request>, rule: string): number {
  const limiter = version.limiters.get(rule) as Limiter;
  const { limit, remaining } = limiter.peek("global") as Decision;
  return limit - remaining;
}

test("a request that passes a middleware again is counted once per matching rule, even if the app rewrote it", () => {
  const paths = ["/a", "/b", "/c"];
  const rules = [
    { name: "all", policy: ten, key: "global" as const },
    ...paths.map((path) => ({ name: path, policy: ten, key: "global" as const, match: { path } })),
  ];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...paths), { minLength: 1 }), (route) => {
      const limit = limitOf({ rules });
      const request = get();
      for (const path of route) {
        request.path = path;
        limit.decide(request);
      }
      for (const { name } of rules) expect(counted(limit, name)).toBe(name === "all" || route.includes(name) ? 1 : 0);
    }),
  );
});

describe("a request that no rule counted at first is counted at the second pass:", () => {
  const limit = { policy: ten, key: "global" as const };
  it.each<[string, RateLimitOptions<Request, string>, Partial<Request>]>([
    ["with another method", { rules: [{ name: "default", ...limit, match: { method: "POST" } }] }, { method: "POST" }],
    ["match functions run again", { rules: [{ name: "default", ...limit, match: ({ path }) => path === "/b" }] }, { path: "/b" }],
    ["which is not skipped now", { ...limit, skip: ({ path }) => path === "/" }, { path: "/b" }],
    ["which is not free now", { ...limit, cost: ({ path }) => (path === "/" ? 0 : 1) }, { path: "/b" }],
    ["which has a key now", { ...limit, key: ({ user }) => user, onMissingKey: "skip" }, { user: "global" }],
    ["which is not exempt now", { ...limit, exempt: { ips: ["192.0.2.1"] } }, { ip: "192.0.2.2" }],
  ])("%s", (_, options, change) => {
    const limit = limitOf(options);
    const request = get();
    expect(limit.decide(request)).toMatchObject({ action: "pass", decision: undefined });
    expect(counted(limit, "default")).toBe(0);
    Object.assign(request, change);
    for (let i = 0; i < 3; i++) limit.decide(request);
    expect(counted(limit, "default")).toBe(1);
    expect(decisionOf(request)).toMatchObject({ name: "default", remaining: 9 });
  });
});

test("a request that passes two versions of the rules is counted once under unchanged rules", () => {
  const rule = (name: string): PlainRule => ({ name, key: "global", policy: { algorithm: "fixed-window", limit: 10, window: "365d" } });
  let user: RuleUser | undefined;
  const source: RuleSource = {
    current: { rules: [rule("stays")] },
    subscribe: (one) => {
      user = one;
      return () => undefined;
    },
  };
  const limit = limitOf({ rules: source });
  const request = get();
  limit.decide(request);
  user?.prepare({ rules: [rule("stays"), rule("comes")] })();
  limit.decide(request);
  expect([counted(limit, "stays"), counted(limit, "comes")]).toEqual([1, 1]);
});

test.each(["draft-7", "draft-6", "legacy"] as const)('headers: "%s" show the more restrictive of two passes', (headers) => {
  const limit = limitOf({
    headers,
    rules: [
      { name: "tight", policy: fixedWindow({ limit: 1, window: "365d" }), match: { method: "GET" } },
      { name: "wide", policy: ten, match: { method: "POST" } },
    ],
  });
  const request = get();
  limit.decide(request);
  request.method = "POST";
  expect(JSON.stringify(limit.decide(request))).toMatch(/limit=1, remaining=0,|-Limit","value":"1"/);
});

test("a key function that takes any number of arguments, and reads the route late, gets each rule's own route", async () => {
  let calls = 0;
  const keys = {
    late: async (...[, info]: [Request, KeyInfo]) => {
      await undefined;
      return info.route;
    },
    plain: async (...[{ path }]: [Request, KeyInfo]) => {
      calls++;
      await undefined;
      return path;
    },
  };
  const paths = ["/users/:id", "/:any/7", "/users/:id"];
  const rules = (["late", "plain"] as const).flatMap((key) =>
    paths.map((path, i) => ({ name: `${key} ${i}`, key, policy: ten, match: { path } })),
  );
  const decided: string[] = [];
  const limit = limitOf({ rules, keys, onEvent: (event) => event.type === "allowed" && decided.push(event.key) });
  expect(await limit.decide({ ...get(), path: "/users/7" })).toMatchObject({ action: "pass" });
  expect(decided).toEqual([...paths, "/users/7", "/users/7", "/users/7"]);
  expect(calls).toBe(1);
});

test("a function that serves as both plan and cost is checked as each", () => {
  const number = (): never => 2 as never;
  const rule = { policy: ten, key: "global" as const, cost: number, plans: { pro: { limit: 20 } } };
  expect(() => limitOf({ ...rule, plan: number }).decide(get())).toThrow(expect.objectContaining({ code: "FLOODGATE_MISSING_PLAN" }));
});

test.each<[string, (request: Request) => Request]>([
  ["itself", (request) => request],
  ["an object on it", (request) => Object.create(request)],
  ["a Proxy of it", (request) => new Proxy(request, {})],
])("a request of Node gets no property, and is counted once if a second middleware is given %s", (_, wrap) => {
  const request = Object.assign(new IncomingMessage(new Socket()), get());
  const before = Reflect.ownKeys(request);
  const limit = limitOf({ policy: ten, key: "global" });
  limit.decide(request as unknown as Request);
  limit.decide(wrap(request as unknown as Request));
  expect(counted(limit, "default")).toBe(1);
  expect(decisionOf(request)).toMatchObject({ name: "default", remaining: 9 });
  expect(Reflect.ownKeys(request)).toEqual(before);
});
