import { startRedis } from "@floodgate/test-servers";
import { times } from "./exchange.js";
import { pageTest } from "./harness.js";

pageTest(
  "koa-ratelimit",
  "koa-ratelimit",
  [
    {
      heading: "In memory",
      requests: [...times(5), { headers: { "x-user": "ann" } }, { path: "/health" }],
      statuses: [200, 200, 200, 429, 429, 200, 200],
      // Its clock starts when the module is loaded, and runs by itself.
      mask: (text) => text.replace(/(X-RateLimit-Reset: )\d+\.\d+/g, "$11795341669.85937").replace(/(Retry-After: )\d+/, "$159"),
    },
    { heading: "Several processes", requests: times(5), statuses: [200, 200, 200, 503, 503], hidesReplies: true, redis: startRedis },
  ],
  ({ app }: { app: import("koa") }) => app.callback(),
);
