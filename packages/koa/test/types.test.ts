import type { Decision, Limiter, RuleSource } from "@floodgate/core";
import { fixedWindow } from "@floodgate/core";
import Router, { type RouterContext } from "@koa/router";
import Koa from "koa";
import mount from "koa-mount";
import Koa2 from "koa2";
import { expectTypeOf, test } from "vitest";
import { rateLimit } from "../src/index.js";

const policy = fixedWindow({ limit: 1, window: "1m" });

interface State {
  user?: { id: string };
}
interface Context {
  db: { find(id: string): string };
}
type Ctx = Koa.ParameterizedContext<State, Context>;

test("Koa 3: ctx.state.rateLimit is typed in later middlewares, and the app's own types do not change", () => {
  new Koa().use(rateLimit({ limit: 1, window: "1m" })).use((ctx) => {
    expectTypeOf(ctx.state.rateLimit).toEqualTypeOf<Decision | undefined>();
  });
  new Koa<State, Context>().use(rateLimit({ limit: 1, window: "1m" })).use((ctx) => {
    expectTypeOf(ctx.state.rateLimit).toEqualTypeOf<Decision | undefined>();
    expectTypeOf(ctx.state.user).toEqualTypeOf<{ id: string } | undefined>();
    expectTypeOf(ctx.db).toEqualTypeOf<Context["db"]>();
    // @ts-expect-error not any
    ctx.state.usr;
    // @ts-expect-error not any
    ctx.bd;
  });
});

test("Koa 2: ctx.state.rateLimit is typed in later middlewares, and the app's own types do not change", () => {
  new Koa2().use(rateLimit({ limit: 1, window: "1m" })).use((ctx) => {
    expectTypeOf(ctx.state.rateLimit).toEqualTypeOf<Decision | undefined>();
  });
  new Koa2<State, Context>().use(rateLimit({ limit: 1, window: "1m" })).use((ctx) => {
    expectTypeOf(ctx.state.rateLimit).toEqualTypeOf<Decision | undefined>();
    expectTypeOf(ctx.state.user).toEqualTypeOf<{ id: string } | undefined>();
    expectTypeOf(ctx.db).toEqualTypeOf<Context["db"]>();
    // @ts-expect-error not any
    ctx.state.usr;
    // @ts-expect-error not any
    ctx.bd;
  });
});

test("a decisionName replaces rateLimit in the types", () => {
  new Koa<State>().use(rateLimit({ policy, decisionName: "quota" })).use((ctx) => {
    expectTypeOf(ctx.state.quota).toEqualTypeOf<Decision | undefined>();
    // @ts-expect-error the property has another name
    ctx.state.rateLimit;
  });
  new Koa2<State>()
    .use(rateLimit({ policy }))
    .use(rateLimit({ policy, decisionName: "quota" }))
    .use((ctx) => {
      expectTypeOf(ctx.state.quota).toEqualTypeOf<Decision | undefined>();
      expectTypeOf(ctx.state.rateLimit).toEqualTypeOf<Decision | undefined>();
    });
});

test("in router routes the decision and the route's parameters are typed", () => {
  const router = new Router<State, Context>();
  router.get("/users/:id", rateLimit({ policy }), (ctx) => {
    expectTypeOf(ctx.state.rateLimit).toEqualTypeOf<Decision | undefined>();
    expectTypeOf(ctx.params).toEqualTypeOf<Record<string, string>>();
    expectTypeOf(ctx.db).toEqualTypeOf<Context["db"]>();
    // @ts-expect-error not any
    ctx.state.usr;
  });
  router.use(rateLimit({ policy })).use("/users", rateLimit({ policy }));
  new Koa<State, Context>().use(router.routes()).use(mount("/users", rateLimit({ policy })));
});

test("the result fits every middleware type", () => {
  expectTypeOf(rateLimit({ policy })).toExtend<Koa.Middleware>();
  expectTypeOf(rateLimit({ policy })).toExtend<Koa.Middleware<State, Context>>();
  expectTypeOf(rateLimit({ policy, decisionName: "quota" })).toExtend<Koa2.Middleware<State, Context>>();
  const several: Koa.Middleware<State, Context>[] = [rateLimit({ policy }), rateLimit({ policy, decisionName: "quota" })];
  expectTypeOf(several).toBeArray();
});

test("functions may use the app's context type, by annotation or by type argument", () => {
  rateLimit({
    policy,
    key: (ctx: Ctx) => ctx.state.user?.id,
    keys: { user: (ctx: Ctx) => ctx.db.find("1") },
    onLimited: (ctx, decision) => {
      expectTypeOf(ctx).toEqualTypeOf<Ctx>();
      expectTypeOf(decision).toEqualTypeOf<Decision | undefined>();
    },
  });
  rateLimit<Ctx>({
    policy: (ctx) => {
      // @ts-expect-error not in the app's state
      ctx.state.usr;
      return policy;
    },
  });
  rateLimit({ policy, key: (ctx: Koa.Context) => ctx.ip, onLimited: (ctx) => ctx.throw(429, "Slow down") });
  rateLimit({ policy, key: (ctx: Koa2.Context) => ctx.ip, onLimited: (ctx) => ctx.throw("Slow down", 429) });
  rateLimit({ policy, key: (ctx: Koa2.ParameterizedContext<State, Context>) => ctx.state.user?.id });
  rateLimit({ policy, key: (ctx: RouterContext<State, Context>) => ctx.params["id"] });
});

test("functions without a context type get Koa's own members, and untyped additions", () => {
  rateLimit({
    policy,
    key: (ctx, { ip }) => {
      expectTypeOf(ctx.method).toEqualTypeOf<string>();
      expectTypeOf(ctx.get).toEqualTypeOf<(header: string) => string>();
      return [ip, ctx.get("x-user"), ctx.state.user?.id, ctx.request.body?.user, ctx.params?.id, ctx["session"].id];
    },
    onLimited: (ctx) => {
      ctx.status = 503;
      ctx.body = { slow: "down" };
      ctx.throw(429, "Slow down", { expose: true });
    },
  });
});

test("with the app's context as type argument, all options are typed, and keys and costs may have any names", () => {
  const source = {} as RuleSource;
  const options = [
    () =>
      rateLimit<Ctx>({
        limit: 100,
        window: "1m",
        key: "user",
        keys: { user: (ctx) => ctx.state.user?.id },
        costs: { tokens: (ctx, response) => ctx.path.length + (response?.status ?? 0) },
        cost: "tokens",
        settle: (ctx, response) => (response?.status === 200 ? ctx.path.length : undefined),
        plan: (ctx) => ctx.state.user?.id,
        plans: { pro: { limit: 1000 } },
        exempt: { ips: ["10.0.0.0/8"], keys: ["root", ["a", 1]] },
        ban: { after: 10, within: "1m", for: "1h" },
      }),
    () =>
      rateLimit<Ctx>({
        keys: { user: (ctx) => ctx.state.user?.id },
        rules: [
          { name: "a", policy, key: "user", settle: "tokens" },
          { name: "b", policy, key: ["ip", "user"], match: (ctx) => ctx.state.user?.id !== undefined },
        ],
      }),
    () => rateLimit<Ctx>({ rules: source, key: "user", keys: { user: (ctx) => ctx.state.user?.id } }),
    () => rateLimit({ rules: source, keys: { user: () => "u" }, costs: { tokens: () => 1 }, plan: () => "pro" }),
    // @ts-expect-error not in the app's state
    () => rateLimit<Ctx>({ policy, keys: { user: (ctx) => ctx.state.usr } }),
    // @ts-expect-error a cost is a number
    () => rateLimit<Ctx>({ policy, costs: { tokens: (ctx) => ctx.state.user?.id } }),
    // @ts-expect-error a settled cost is a number
    () => rateLimit<Ctx>({ policy, settle: (ctx) => ctx.state.user?.id }),
    // @ts-expect-error a plan is a name
    () => rateLimit<Ctx>({ policy, plan: (ctx) => ctx.path.length }),
    // @ts-expect-error a plan's numbers are numbers
    () => rateLimit<Ctx>({ policy, plans: { pro: { limit: "1000" } } }),
    // @ts-expect-error a ban needs a duration
    () => rateLimit<Ctx>({ policy, ban: { after: 10, within: "1m" } }),
    // @ts-expect-error ranges are a list
    () => rateLimit<Ctx>({ policy, exempt: { ips: "10.0.0.0/8" } }),
  ];
  expectTypeOf(options).toBeArray();
});

test("a misspelt key name is a type error, in rules on that rule", () => {
  const keys = { user: () => "u", tenant: () => "t" };
  rateLimit({
    keys,
    rules: [
      { name: "a", key: "user", policy },
      { name: "b", key: "ip", policy },
      { name: "c", key: ["tenant", "header:x-api-key", "route", "global"], policy },
      { name: "secret", key: "secret:user", policy },
      { name: "secrets", key: ["secret:tenant", "secret:header:x-token"], policy },
      { name: "d", key: (ctx) => ctx.get("x-user"), policy },
    ],
  });
  const misspelt = () =>
    rateLimit({
      keys,
      rules: [
        { name: "a", key: "user", policy },
        // @ts-expect-error "usr" is not a key
        { name: "b", key: "usr", policy },
      ],
    });
  const misspeltSecret = () =>
    rateLimit({
      keys,
      rules: [
        // @ts-expect-error "usr" is not a key
        { name: "a", key: "secret:usr", policy },
      ],
    });
  const inTuple = () =>
    rateLimit({
      keys,
      rules: [
        // @ts-expect-error "tenat" is not a key
        { name: "a", key: ["ip", "tenat"], policy },
      ],
    });
  // @ts-expect-error "user" is not defined in `keys`
  const undefinedKey = () => rateLimit({ policy, key: "user" });
  expectTypeOf([misspelt, misspeltSecret, inTuple, undefinedKey]).toBeArray();
});

test("misspelt words and durations are type errors", () => {
  const wrong = [
    // @ts-expect-error not an option
    () => rateLimit({ limit: 1, window: "1m", onLimitted: () => undefined }),
    // @ts-expect-error a duration with an unknown unit
    () => rateLimit({ limit: 1, window: "1 minute" }),
    // @ts-expect-error an unknown mode
    () => rateLimit({ policy, mode: "watch" }),
    // @ts-expect-error a name is a string
    () => rateLimit({ policy, decisionName: 1 }),
    // @ts-expect-error a policy function must return a policy
    () => rateLimit({ policy: () => undefined }),
    // @ts-expect-error an object is not a key
    () => rateLimit({ policy, key: () => ({ id: 1 }) }),
  ];
  expectTypeOf(wrong).toBeArray();
});

test("the middleware carries its limiters", () => {
  const limit = rateLimit({ policy });
  expectTypeOf(limit.limiter).toEqualTypeOf<Limiter>();
  expectTypeOf(limit.limiters).toEqualTypeOf<ReadonlyMap<string, Limiter>>();
  expectTypeOf(limit.close).toEqualTypeOf<() => void>();
});
