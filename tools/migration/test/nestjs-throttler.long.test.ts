import type { INestApplication } from "@nestjs/common";
import { times } from "./exchange.js";
import { pageTest } from "./harness.js";

const login = { method: "POST", path: "/login" };

pageTest(
  "nestjs-throttler",
  "@nestjs/throttler",
  [
    { heading: "For the whole app", requests: times(5), statuses: [200, 200, 200, 429, 429] },
    { heading: "A handler", requests: [...times(3, login), {}], statuses: [201, 201, 429, 200] },
  ],
  async ({ app }: { app: INestApplication }) => {
    await app.init();
    return app.getHttpAdapter().getInstance();
  },
);
