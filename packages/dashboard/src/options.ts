import { FloodgateError } from "@floodgate/core";
import { flag, functionOrNothing, wrongOption } from "@floodgate/core/adapter";
import { checkOptions } from "@floodgate/core/rules";
import type { DashboardRedis } from "./share/redis.js";

export interface DashboardOptions<Req> {
  /**
   * Who may see the dashboard: `(req) => req.user?.admin === true`. It answers true or false, or a promise of one. Who may not see it gets what
   * the app answers at an address without a route. Without it, only browsers on this machine may see the dashboard, and nobody where
   * `NODE_ENV` is `production`.
   */
  authorize?: (request: Req) => unknown;
  /** Whether those whom `authorize` lets in may reset, block and unblock keys. Default false. It needs `authorize`. */
  actions?: boolean;
  /** Who acts, for the events of reset, block and unblock: `(req) => req.user?.email`. Default: `"dashboard"`. */
  who?: (request: Req) => string | undefined;
  /** Whether keys are shown as they are. Default false: they are masked, as `203.0.113.x` and `us…42`. */
  showKeys?: boolean;
  /**
   * The app's client of ioredis or redis (node-redis). Then the dashboard of each process shows the sum of all processes that share this Redis
   * and `prefix`. Without it, it shows its own process.
   */
  redis?: DashboardRedis;
  /** What the names of the dashboard's Redis keys begin with. Default `"floodgate:dashboard"`. */
  prefix?: string;
  /** The heading of the page. Default `"Floodgate"`. */
  title?: string;
}

const names = ["authorize", "actions", "who", "showKeys", "redis", "prefix", "title"] as const;

/** @throws FloodgateError if an option is invalid. */
export function checked<Req>(options: DashboardOptions<Req>, more: readonly string[], example: string): DashboardOptions<Req> {
  const where = "dashboard";
  checkOptions(where, options, [...names, ...more], `dashboard({ authorize: ${example} })`);
  functionOrNothing(where, "authorize", options.authorize, example);
  functionOrNothing(where, "who", options.who, "(req) => req.user?.email");
  for (const name of ["actions", "showKeys"] as const) if (options[name] !== undefined) flag(where, name, options[name]);
  const { title, prefix } = options;
  if (prefix !== undefined && (typeof prefix !== "string" || !/^[^{}]{1,200}$/.test(prefix))) {
    throw wrongOption(where, "prefix", "a text of 1 to 200 characters without braces", prefix, 'prefix: "my-app:dashboard"');
  }
  if (title !== undefined && (typeof title !== "string" || title === "" || title.length > 100)) {
    throw wrongOption(where, "title", "a text of 1 to 100 characters", title, 'title: "My app"');
  }
  if (options.actions === true && options.authorize === undefined) {
    throw new FloodgateError(
      "FLOODGATE_CONFLICTING_OPTIONS",
      `dashboard: \`actions\` needs \`authorize\`, which says who may act. Write dashboard({ actions: true, authorize: ${example} }).`,
      { at: ["actions"] },
    );
  }
  return options;
}
