import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import { times } from "./exchange.js";
import { pageTest } from "./harness.js";

const login = (user: string, password: string) => ({ method: "POST", path: "/login", headers: { "x-user": user, "x-password": password } });

pageTest(
  "hono-rate-limiter",
  "hono-rate-limiter",
  [
    { heading: "One limit", requests: times(5), statuses: [200, 200, 200, 429, 429] },
    {
      heading: "A login",
      requests: [login("ann", "?"), login("ann", "secret"), login("ann", "?"), login("ann", "?"), login("bob", "?")],
      statuses: [401, 200, 401, 429, 401],
    },
  ],
  ({ app }: { app: Hono }) => getRequestListener(app.fetch),
);
