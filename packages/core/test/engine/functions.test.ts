import assert from "node:assert/strict";
import fc from "fast-check";
import type { KeyInfo } from "../../src/adapter.js";
import { type FloodgateEvent, fixedWindow, type Rule } from "../../src/index.js";
import { describe, it, type LimitSetup, later, type RequestView } from "./app.js";

const policy = fixedWindow({ limit: 100, window: "1m" });

/** The functions of the app, and their answers. The route depends on the rule. */
const answers = { user: "ann", tenant: "acme", items: 2, bytes: 3, clientIp: "192.0.2.1", plan: "pro" } as const;
type Name = keyof typeof answers | "routed";

/** Parts of rules that share keys, costs and plans. */
const anyRule = fc.record({
  key: fc.constantFrom("ip", "user", "tenant", "routed", ["user", "ip"], ["tenant", "routed"]),
  path: fc.constantFrom("/users/:id", "/users/*", "/:any/7"),
  cost: fc.constantFrom(1, "items", "bytes"),
  hasPlans: fc.boolean(),
});

describe("the functions of an app", () => {
  it("run once a request, however many rules use them, or once a route if they read it; each rule gets its own answer", async (web) => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(anyRule, { minLength: 1, maxLength: 6 }), fc.func(fc.boolean()), async (parts, isAsync) => {
        const calls = new Map<Name, number>();
        const counted = <Value>(name: Name, answer: Value): Value | Promise<Value> => {
          calls.set(name, (calls.get(name) ?? 0) + 1);
          return isAsync(name) ? Promise.resolve(answer) : answer;
        };
        const of = (name: keyof typeof answers) => (_: RequestView) => counted(name, answers[name]) as never;
        run++;
        const rules = parts.map(({ key, path, cost, hasPlans }, i): Rule<RequestView, string> => {
          const plans = hasPlans ? { plans: { pro: { limit: 200 } } } : {};
          return { name: `${run} ${i}`, key, policy, cost, match: { path }, ...plans };
        });
        const events: FloodgateEvent[] = [];
        const limit: LimitSetup = {
          rules,
          keys: { user: of("user"), tenant: of("tenant"), routed: (_: RequestView, { route }: KeyInfo) => counted("routed", route) },
          costs: { items: of("items"), bytes: of("bytes") },
          clientIp: of("clientIp"),
          ...(parts.some(({ hasPlans }) => hasPlans) ? { plan: of("plan") } : {}),
          onEvent: (event) => event.type !== "request" && events.push(event),
        };
        const app = await web.start({ limits: [limit], steps: [{ route: "/users/:id", limits: [0] }] });
        assert.equal((await app.get("/users/7")).status, 200);

        const expected = parts.map(({ key, path, cost, hasPlans }) => {
          const route = path.includes("*") ? "/users/:id" : path;
          const texts = [key].flat().map((name) => ({ ...answers, routed: route, ip: answers.clientIp })[name as Name | "ip"]);
          const text = Array.isArray(key) ? `(${texts.join(",")})` : texts[0];
          return [text, cost === 1 ? 1 : answers[cost as "items"], hasPlans ? 200 : 100];
        });
        const decided = events.flatMap((event) => (event.type === "allowed" ? [event] : []));
        assert.deepEqual(
          decided.map(({ key, decision }) => [key, decision.cost, decision.limit]),
          expected,
        );
        const routes = new Set(parts.filter(({ key }) => key.includes("routed")).map(({ path }) => (path === "/:any/7" ? 1 : 2)));
        for (const [name, times] of calls) assert.equal(times, name === "routed" ? routes.size : 1, name);
      }),
      { numRuns: 40 },
    );
  });

  it("run once if they throw, and the request fails", async (web) => {
    let calls = 0;
    const user = (): never => {
      calls++;
      throw new Error("mine");
    };
    const shadow = { policy, key: "user", mode: "shadow" } as const;
    const rules = [
      { ...shadow, name: "a" },
      { ...shadow, name: "b" },
      { name: "c", policy, key: "user" },
    ];
    const { onEvent } = web.listen("warning");
    const app = await web.start({ rules, keys: { user }, onEvent });
    assert.equal((await app.get()).status, 500);
    assert.deepEqual([calls, app.codes], [1, ["mine"]]);
  });

  it("start one query, even if they answer an object that runs its query at each `then`", async (web) => {
    let queries = 0;
    const query = <Row>(row: Row): PromiseLike<Row> => ({
      // biome-ignore lint/suspicious/noThenProperty: what query builders answer
      then: (done, failed) => {
        queries++;
        return Promise.resolve(row).then(done, failed);
      },
    });
    const rules = ["a", "b", "c"].map((name) => ({ name, policy, key: "user", cost: "items" }) as const);
    const app = await web.start({ rules, keys: { user: () => query("ann") }, costs: { items: () => query(2) } });
    assert.equal((await app.get()).status, 200);
    assert.equal(queries, 2);
  });

  it("run once as settle, however many rules settle by them", async (web) => {
    let calls = 0;
    const used = (_: RequestView, response?: { readonly status: number }): number | undefined => {
      if (response === undefined) return undefined;
      calls++;
      return 7;
    };
    const rules = ["a", "b"].map((name) => ({ name, policy, key: "global", cost: 10, settle: "used" }) as const);
    let heard = (): void => undefined;
    const both = new Promise<void>((resolve) => {
      heard = resolve;
    });
    const settled: number[] = [];
    const app = await web.start({
      rules,
      costs: { used },
      onEvent: (event) => event.type === "settled" && settled.push(event.cost) === 2 && heard(),
    });
    assert.equal((await app.get()).status, 200);
    await both;
    assert.deepEqual([calls, settled], [1, [7, 7]]);
  });
});

describe("asynchronous functions", () => {
  const ten = fixedWindow({ limit: 10, window: "1m" });

  it("work for all options at once, with an asynchronous store", async (web) => {
    const app = await web.start({
      name: "all",
      store: later(web.store),
      skip: async (request) => request.path.startsWith("/health"),
      key: async (request, { ip }) => [ip, request.header("x-user") ?? "nobody"],
      clientIp: async () => "192.0.2.1",
      policy: async () => ten,
      cost: async () => 5,
      onLimited: async () => ({ body: "later" }),
    });
    assert.deepEqual(await app.statuses(3), [200, 200, 429]);
    assert.equal((await app.get()).body, "later");
    assert.equal((await app.get("/", { "x-user": "ann" })).status, 200);
    assert.equal((await app.limits[0]?.limiter.reset(["192.0.2.1", "nobody"])) ?? undefined, undefined);
    assert.equal((await app.get()).status, 200);
    assert.deepEqual(app.errors, []);
  });

  it("do not let concurrent requests exceed the limit", async (web) => {
    const app = await web.start({ policy: ten, store: later(web.store), key: async () => "everyone" });
    const responses = await Promise.all(Array.from({ length: 25 }, () => app.get()));
    assert.equal(responses.filter(({ status }) => status === 200).length, 10);
  });
});
