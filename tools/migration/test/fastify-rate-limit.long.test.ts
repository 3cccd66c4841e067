import type { FastifyInstance } from "fastify";
import { expect, it } from "vitest";
import { exchange, times } from "./exchange.js";
import { holdClock, pageTest } from "./harness.js";
import { load, Page } from "./page.js";

holdClock();

const login = { method: "POST", path: "/login", headers: { "x-user": "ann" } };

pageTest(
  new Page("fastify-rate-limit"),
  "@fastify/rate-limit",
  [
    { heading: "With Express middleware", requests: times(5), statuses: [200, 200, 200, 429, 429], isByHand: true },
    {
      heading: "In a hook",
      requests: [...times(3, login), { ...login, headers: { "x-user": "bob" } }, {}],
      statuses: [401, 401, 429, 401, 200],
      isByHand: true,
    },
  ],
  async ({ app }: { app: FastifyInstance }) => {
    await app.ready();
    return app.routing;
  },
);

it("with @fastify/middie alone, every request fails, as the page says", async () => {
  const { app } = await load<{ app: FastifyInstance }>(`import middie from "@fastify/middie";
    import { rateLimit } from "@floodgate/express";
    import Fastify from "fastify";
    export const app = Fastify();
    await app.register(middie);
    app.use(rateLimit({ limit: 3, window: "15m" }));
    app.get("/", async () => "Hello");`);
  await app.ready();
  expect((await exchange(app.routing, [{}])).map(({ status }) => status)).toEqual([500]);
});
