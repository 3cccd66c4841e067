import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { nodeHeader, socketAddress } from "@floodgate/core/adapter";
import { type Context, type Env, Hono } from "hono";
import { isClosing, readBody } from "./adapters/node.js";
import { Dashboard } from "./dashboard.js";
import type { DashboardOptions } from "./options.js";
import type { Reply, View } from "./routes/view.js";

export type { DashboardOptions } from "./options.js";

/** A Hono app that answers with the dashboard. */
export type DashboardApp<E extends Env> = Hono<E> & {
  /** Ends all open streams. With the last dashboard of the process, it stops counting too. */
  close(): void;
};

/**
 * Makes a Hono app that shows what Floodgate limits in this process.
 *
 *     app.route("/_floodgate", dashboard({ authorize: (c) => c.get("user")?.admin === true }));
 *
 * Counting starts with this call, in bounded memory. It runs on Node, Bun and Deno.
 * @param advice what the warning of a closed dashboard says to write. Default: the option `authorize`.
 * @throws FloodgateError if an option is invalid: when called, not at a request.
 */
// biome-ignore lint/suspicious/noExplicitAny: any environment of an app
export function dashboard<E extends Env = any>(options: DashboardOptions<Context<E>> = {}, advice?: string): DashboardApp<E> {
  const own = new Dashboard<Context<E>>(options, [], '(c) => c.get("user")?.admin === true', advice);
  const app = new Hono<E>();
  app.all("*", async (c, next) => {
    const reply = await own.handle(honoView(c), c);
    return reply === undefined ? next() : responseOf(c, reply);
  });
  return Object.assign(app, { close: () => own.close() });
}

interface Runtime {
  /** The environment of @hono/node-server, if the app passes it under this name. */
  readonly server?: Runtime;
  readonly incoming?: IncomingMessage;
}

function honoView(c: Context): View {
  // `app.request()` may have no environment.
  const env = c.env as Runtime | null | undefined;
  const { incoming } = env?.server ?? env ?? {};
  const queryAt = c.req.url.indexOf("?");
  return {
    identity: c,
    method: c.req.method,
    path: pathBelow(c),
    query: queryAt < 0 ? "" : c.req.url.slice(queryAt + 1),
    httpVersion: incoming?.httpVersion,
    tls: incoming === undefined ? c.req.url.startsWith("https:") : (incoming.socket as Partial<TLSSocket>).encrypted === true,
    isClosing: () => incoming !== undefined && isClosing(incoming.socket),
    remoteAddress: socketAddress(c.req.raw, c.env),
    header: (name) => (incoming === undefined ? fetchHeader(c.req.raw, name) : nodeHeader(incoming, name)),
    headerNames: () => (incoming === undefined ? c.req.raw.headers.keys() : Object.keys(incoming.headers)),
    // A middleware has read it, and Hono has kept it.
    body: async (most) =>
      c.req.raw.bodyUsed ? { text: await c.req.text() } : readBody((c.req.raw.body ?? []) as AsyncIterable<Uint8Array>, most),
  };
}

/** A `Request` has the `:authority` of HTTP/2 in its URL only. */
function fetchHeader({ headers, url }: Request, name: string): string | undefined {
  return name === ":authority" ? new URL(url).host : (headers.get(name) ?? undefined);
}

/** The path without the part that the mount's pattern takes: that part has as many segments as the pattern, which ends in `/*`. */
function pathBelow(c: Context): string {
  const pattern = c.req.matchedRoutes[c.req.routeIndex]?.path ?? "/*";
  const mounted = pattern.split("/").length - 2;
  const rest = c.req.path.split("/").slice(1 + mounted);
  return rest.length === 0 ? "" : `/${rest.join("/")}`;
}

function responseOf(c: Context, { status, headers, body }: Reply): Response {
  // The client has left while `authorize` was asked, so nobody will read or cancel the stream. Requests of Azure Functions have no signal.
  if ((c.req.raw as Partial<Request>).signal?.aborted && typeof body !== "string") void body.cancel();
  return new Response(body, { status, headers: headers.map(([name, value]): [string, string] => [name, value]) });
}
