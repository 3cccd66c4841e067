import type { IncomingMessage, ServerResponse } from "node:http";
import { invalidOption } from "@floodgate/core/rules";
import { nodeView, sendReply } from "./adapters/node.js";
import { Dashboard } from "./dashboard.js";
import type { DashboardOptions } from "./options.js";
import type { Reply } from "./routes/view.js";

export type { DashboardOptions } from "./options.js";

/** The used part of a context. It fits Koa 2 and 3. */
export interface KoaDashboardContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  path: string;
  querystring: string;
  status: number;
  body: unknown;
  respond?: boolean;
  set(name: string, value: string): void;
  // biome-ignore lint/suspicious/noExplicitAny: only the app knows what its parsers put there
  request: any;
  // biome-ignore lint/suspicious/noExplicitAny: only the app knows what its authentication puts there
  state: any;
}

export interface KoaDashboardOptions<Ctx> extends DashboardOptions<Ctx> {
  /** The path of the dashboard, for an app without koa-mount: `"/_floodgate"`. Default: it is mounted, and all of the path is its own. */
  path?: string;
}

/** Koa middleware that answers with the dashboard. */
export interface DashboardMiddleware {
  (ctx: KoaDashboardContext, next: () => Promise<unknown>): Promise<void>;
  /** Ends all open streams. With the last dashboard of the process, it stops counting too. */
  close(): void;
}

/**
 * Makes Koa middleware that shows what Floodgate limits in this process.
 *
 *     app.use(dashboard({ path: "/_floodgate", authorize: (ctx) => ctx.state.user?.admin === true }));
 *     app.use(mount("/_floodgate", dashboard()));
 *
 * Counting starts with this call, in bounded memory.
 * @throws FloodgateError if an option is invalid: when called, not at a request.
 */
export function dashboard<Ctx extends KoaDashboardContext = KoaDashboardContext>(
  options: KoaDashboardOptions<Ctx> = {},
): DashboardMiddleware {
  const own = new Dashboard<Ctx>(options, ["path"], "(ctx) => ctx.state.user?.admin === true");
  const base = checkedPath(options.path);
  const middleware = async (ctx: KoaDashboardContext, next: () => Promise<unknown>): Promise<void> => {
    const path = below(base, ctx.path);
    const view = path === undefined ? undefined : nodeView(ctx.req, `${path}?${ctx.querystring}`, ctx.request.body);
    const reply = view && (await own.handle(view, ctx as Ctx));
    if (reply === undefined) await next();
    else send(ctx, reply);
  };
  return Object.assign(middleware, { close: () => own.close() });
}

function send(ctx: KoaDashboardContext, reply: Reply): void {
  const { status, headers, body } = reply;
  if (typeof body === "string") {
    ctx.status = status;
    for (const [name, value] of headers) ctx.set(name, value);
    ctx.body = body;
    return;
  }
  // Koa reports a stream whose client has gone as an error of the app.
  ctx.respond = false;
  sendReply(ctx.req, ctx.res, reply);
}

function below(base: string, path: string): string | undefined {
  if (base === "") return path;
  if (path === base) return "/";
  return path.startsWith(`${base}/`) ? path.slice(base.length) : undefined;
}

/** @throws FloodgateError */
function checkedPath(path: unknown): string {
  if (path === undefined) return "";
  if (typeof path === "string" && /^\/[^?#]*[^/?#]$/.test(path)) return path;
  const was = JSON.stringify(path);
  throw invalidOption(`dashboard: \`path\` must begin with a slash and not end with one, but was ${was}. Write path: "/_floodgate".`, [
    "path",
  ]);
}
