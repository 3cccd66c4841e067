import type { FastifyInstance } from "fastify";
import { times } from "./exchange.js";
import { pageTest } from "./harness.js";

const login = { method: "POST", path: "/login", headers: { "x-user": "ann" } };

pageTest(
  "fastify-rate-limit",
  "@fastify/rate-limit",
  [
    { heading: "The whole app", requests: times(5), statuses: [200, 200, 200, 429, 429] },
    {
      heading: "A route",
      requests: [...times(3, login), { ...login, headers: { "x-user": "bob" } }, {}],
      statuses: [401, 401, 429, 401, 200],
    },
  ],
  async ({ app }: { app: FastifyInstance }) => {
    await app.ready();
    return app.routing;
  },
);
