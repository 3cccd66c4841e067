import { type Decision, fixedWindow, type Limiter, type RuleSource } from "@floodgate/core";
import { type Context, Hono } from "hono";
import { createFactory } from "hono/factory";
import { expectTypeOf, test } from "vitest";
import { type RateLimitVariables, rateLimit } from "../src/index.js";

const policy = fixedWindow({ limit: 1, window: "1m" });

interface AppEnv {
  Bindings: { PLAN: string };
  Variables: { user: { id: string } };
}

test("the decision is a context variable that every handler knows", () => {
  new Hono().use(rateLimit({ policy })).get("/", (c) => {
    expectTypeOf(c.var.rateLimit).toEqualTypeOf<Decision | undefined>();
    expectTypeOf(c.get("rateLimit")).toEqualTypeOf<Decision | undefined>();
    return c.text("ok");
  });
  new Hono<AppEnv>().get("/", (c) => {
    expectTypeOf(c.get("rateLimit")).toEqualTypeOf<Decision | undefined>();
    return c.text(c.var.user.id);
  });
});

test("with decisionName it is known only to handlers after the limit", () => {
  const app = new Hono<AppEnv>();
  app.get("/:id", rateLimit({ policy, decisionName: "quota" }), (c) => {
    expectTypeOf(c.var.quota).toEqualTypeOf<Decision | undefined>();
    expectTypeOf(c.get("quota")).toEqualTypeOf<Decision | undefined>();
    expectTypeOf(c.req.param("id")).toEqualTypeOf<string>();
    expectTypeOf(c.var.user.id).toEqualTypeOf<string>();
    // @ts-expect-error no such variable
    return c.text(c.get("qouta"));
  });
  app.use(rateLimit({ policy, decisionName: "quota" })).get("/chained", (c) => c.json(c.var.quota?.remaining));
  app.get("/", (c) => {
    // @ts-expect-error no earlier limit has that name
    return c.json(c.get("quota"));
  });
  new Hono<{ Variables: RateLimitVariables<"daily"> }>().get("/", (c) => {
    expectTypeOf(c.var.daily).toEqualTypeOf<Decision | undefined>();
    return c.text("ok");
  });
});

test("functions get the app's own context type", () => {
  const app = new Hono<AppEnv>();
  app.use(
    rateLimit<AppEnv>({
      policy: (c) => fixedWindow({ limit: c.env.PLAN === "paid" ? 100 : 1, window: "1m" }),
      key: (c, { ip }) => [ip, c.var.user.id],
      cost: (c) => c.req.path.length,
      skip: (c) => c.req.header("x-health") !== undefined,
      onLimited: (c, decision) => {
        expectTypeOf(decision).toEqualTypeOf<Decision | undefined>();
        return c.json({ user: c.var.user.id }, 429);
      },
      clientIp: (c) => c.req.header("x-real-ip"),
    }),
  );
  // @ts-expect-error no such variable
  rateLimit<AppEnv>({ policy, key: (c) => c.var.usr.id });
  app.use(rateLimit({ policy, keys: { user: (c: Context<AppEnv>) => c.var.user.id }, key: "user" }));
  createFactory<AppEnv>().createHandlers(rateLimit({ policy }), (c) => c.text(c.var.user.id));
});

test("onLimited returns a response or a promise of it, or nothing", () => {
  rateLimit({ policy, onLimited: (c) => c.text("slow") });
  rateLimit({ policy, onLimited: async (c) => c.redirect("/plans") });
  rateLimit({ policy, onLimited: () => undefined });
  // @ts-expect-error a string is not a response
  rateLimit({ policy, onLimited: () => "slow" });
});

test("with the app's environment as type argument, all options are typed, and keys and costs may have any names", () => {
  const source = {} as RuleSource;
  const options = [
    () =>
      rateLimit<AppEnv>({
        limit: 100,
        window: "1m",
        key: "user",
        keys: { user: (c) => c.var.user.id },
        costs: { tokens: (c, response) => c.req.path.length + (response?.status ?? 0) },
        cost: "tokens",
        settle: (c, response) => (response?.status === 200 ? c.req.path.length : undefined),
        plan: (c) => c.var.user.id,
        plans: { pro: { limit: 1000 } },
        exempt: { ips: ["10.0.0.0/8"], keys: ["root", ["a", 1]] },
        ban: { after: 10, within: "1m", for: "1h" },
      }),
    () =>
      rateLimit<AppEnv>({
        keys: { user: (c) => c.var.user.id },
        rules: [
          { name: "a", policy, key: "user", settle: "tokens" },
          { name: "b", policy, key: ["ip", "user"], match: (c) => c.var.user.id !== undefined },
        ],
      }),
    () => rateLimit<AppEnv>({ rules: source, key: "user", keys: { user: (c) => c.var.user.id } }),
    () => rateLimit({ rules: source, keys: { user: () => "u" }, costs: { tokens: () => 1 }, plan: () => "pro" }),
    // @ts-expect-error no such variable
    () => rateLimit<AppEnv>({ policy, keys: { user: (c) => c.var.usr.id } }),
    // @ts-expect-error a cost is a number
    () => rateLimit<AppEnv>({ policy, costs: { tokens: (c) => c.var.user.id } }),
    // @ts-expect-error a settled cost is a number
    () => rateLimit<AppEnv>({ policy, settle: (c) => c.var.user.id }),
    // @ts-expect-error a plan is a name
    () => rateLimit<AppEnv>({ policy, plan: (c) => c.req.path.length }),
    // @ts-expect-error a plan's numbers are numbers
    () => rateLimit<AppEnv>({ policy, plans: { pro: { limit: "1000" } } }),
    // @ts-expect-error a ban needs a duration
    () => rateLimit<AppEnv>({ policy, ban: { after: 10, within: "1m" } }),
    // @ts-expect-error ranges are a list
    () => rateLimit<AppEnv>({ policy, exempt: { ips: "10.0.0.0/8" } }),
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
      { name: "d", key: (c) => c.req.header("x-user"), policy },
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
    // @ts-expect-error an unknown format
    () => rateLimit({ policy, headers: "draft-9" }),
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
