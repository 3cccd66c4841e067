import type { Decision, Limiter, RuleSource } from "@floodgate/core";
import { fixedWindow } from "@floodgate/core";
import express5 from "express";
import express4 from "express4";
import { expectTypeOf, test } from "vitest";
import { rateLimit } from "../src/index.js";

declare global {
  namespace Express {
    interface Request {
      quota?: Decision;
    }
  }
}

interface AppRequest extends express5.Request {
  user?: { id: string };
}

const policy = fixedWindow({ limit: 1, window: "1m" });

test("Express 5: req.params keeps the route's type, and req.rateLimit is typed", () => {
  const app = express5();
  app.get("/users/:id", rateLimit({ limit: 1, window: "1m" }), (req, res) => {
    expectTypeOf(req.params.id).toEqualTypeOf<string>();
    expectTypeOf(req.rateLimit).toEqualTypeOf<Decision | undefined>();
    expectTypeOf(req.query).not.toBeAny();
    // @ts-expect-error the route has no such parameter
    res.json(req.params.name);
  });
  app.use(rateLimit({ policy, key: (req, { ip }) => [ip, String(req.body?.user)] }));
  app.use("/api", rateLimit({ policy }), express5.Router().use(rateLimit({ policy })));
});

test("Express 4: req.params keeps the route's type, and req.rateLimit is typed", () => {
  const app = express4();
  app.get("/users/:id", rateLimit({ limit: 1, window: "1m" }), (req, res) => {
    expectTypeOf(req.params.id).toEqualTypeOf<string>();
    expectTypeOf(req.rateLimit).toEqualTypeOf<Decision | undefined>();
    expectTypeOf(req.query).not.toBeAny();
    // @ts-expect-error the route has no such parameter
    res.json(req.params.name);
  });
  app.use(rateLimit({ policy, key: (req, { ip }) => [ip, String(req.body?.user)] }));
  app.use("/api", rateLimit({ policy }), express4.Router().use(rateLimit({ policy })));
});

test("a declared decisionName is typed in both versions", () => {
  const limit = rateLimit({ policy, decisionName: "quota" });
  express5().get("/users/:id", limit, (req) => expectTypeOf(req.quota).toEqualTypeOf<Decision | undefined>());
  express4().get("/users/:id", limit, (req) => expectTypeOf(req.quota).toEqualTypeOf<Decision | undefined>());
});

test("functions may annotate the request and response types of the app's Express", () => {
  express5().use(
    rateLimit({ policy, key: (req: express5.Request) => req.get("x-user"), onLimited: (_req, res: express5.Response) => res.send("no") }),
  );
  express4().use(
    rateLimit({ policy, key: (req: express4.Request) => req.get("x-user"), onLimited: (_req, res: express4.Response) => res.send("no") }),
  );
});

test("with the app's request as type argument, all options are typed, and keys and costs may have any names", () => {
  const source = {} as RuleSource;
  const options = [
    () =>
      rateLimit<AppRequest>({
        limit: 100,
        window: "1m",
        key: "user",
        keys: { user: (req) => req.user?.id },
        costs: { tokens: (req, response) => req.path.length + (response?.status ?? 0) },
        cost: "tokens",
        settle: (req, response) => (response?.status === 200 ? req.path.length : undefined),
        plan: (req) => req.user?.id,
        plans: { pro: { limit: 1000 } },
        exempt: { ips: ["10.0.0.0/8"], keys: ["root", ["a", 1]] },
        ban: { after: 10, within: "1m", for: "1h" },
      }),
    () =>
      rateLimit<AppRequest>({
        keys: { user: (req) => req.user?.id },
        rules: [
          { name: "a", policy, key: "user", settle: "tokens" },
          { name: "b", policy, key: ["ip", "user"], match: (req) => req.user?.id !== undefined },
        ],
      }),
    () => rateLimit<AppRequest>({ rules: source, key: "user", keys: { user: (req) => req.user?.id } }),
    () => rateLimit({ rules: source, keys: { user: () => "u" }, costs: { tokens: () => 1 }, plan: () => "pro" }),
    // @ts-expect-error requests have no such property
    () => rateLimit<AppRequest>({ policy, keys: { user: (req) => req.usr } }),
    // @ts-expect-error a cost is a number
    () => rateLimit<AppRequest>({ policy, costs: { tokens: (req) => req.user?.id } }),
    // @ts-expect-error a settled cost is a number
    () => rateLimit<AppRequest>({ policy, settle: (req) => req.user?.id }),
    // @ts-expect-error a plan is a name
    () => rateLimit<AppRequest>({ policy, plan: (req) => req.path.length }),
    // @ts-expect-error a plan's numbers are numbers
    () => rateLimit<AppRequest>({ policy, plans: { pro: { limit: "1000" } } }),
    // @ts-expect-error a ban needs a duration
    () => rateLimit<AppRequest>({ policy, ban: { after: 10, within: "1m" } }),
    // @ts-expect-error ranges are a list
    () => rateLimit<AppRequest>({ policy, exempt: { ips: "10.0.0.0/8" } }),
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
      { name: "d", key: (req) => req.get("x-user"), policy },
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
    // @ts-expect-error "legacy" must be second
    () => rateLimit({ policy, headers: ["legacy", "standard"] }),
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
