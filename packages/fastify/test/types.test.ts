import Fastify from "fastify";
import { expect, expectTypeOf, it } from "vitest";
import { type Decision, fixedWindow, type RateLimitPlugin, rateLimit } from "../src/index.js";

const policy = fixedWindow({ limit: 1, window: "1m" });

it("a plugin registers on HTTP/1 and HTTP/2 apps", () => {
  const limit = rateLimit({ limit: 1, window: "1m" });
  expectTypeOf(limit).toEqualTypeOf<RateLimitPlugin>();
  Fastify().register(limit);
  Fastify({ http2: true }).register(limit);
});

it("routes are typed: their options, the decision, and hooks", () => {
  const app = Fastify();
  const limit = rateLimit({ policy });
  app.register(limit);
  app.get("/a", { config: { rateLimit: { limit: 5, window: "1m", hook: "preHandler" } } }, async ({ rateLimit }) => {
    expectTypeOf(rateLimit).toEqualTypeOf<Decision | undefined>();
  });
  app.get("/b", { config: { rateLimit: false }, onRequest: limit.hook, preHandler: [limit.hook] }, async () => "b");
  app.setNotFoundHandler({ preHandler: limit.hook }, (_request, reply) => reply.send());
  // @ts-expect-error a window that is no duration
  app.get("/c", { config: { rateLimit: { limit: 5, window: "1x" } } }, async () => "c");
});

it("options are typed: functions get Fastify's request, and rules know the names of keys", () => {
  rateLimit({
    policy,
    key: (request, { ip }) => [ip, request.routeOptions.url ?? ""],
    skip: ({ url }) => url === "/health",
    onLimited: (_request, reply, decision) => reply.code(503).send(decision?.name),
  });
  rateLimit({ policy, onLimited: "throw", hook: "preHandler", global: false });
  rateLimit({ rules: [{ name: "a", policy, key: "user" }], keys: { user: ({ headers }) => headers["x-user"]?.toString() } });
  // @ts-expect-error a misspelt name
  expect(() => rateLimit({ rules: [{ name: "a", policy, key: "usr" }], keys: { user: () => "ann" } })).toThrow();
  // @ts-expect-error a hook that is too late
  expect(() => rateLimit({ policy, hook: "onSend" })).toThrow();
});
