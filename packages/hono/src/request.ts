import type { RequestReader } from "@floodgate/core/adapter";
import type { Context } from "hono";
import { edgeAddress, socketAddress } from "./connection.js";

export const honoReader: RequestReader<Context> = {
  // Node's message would be that of each request too which the app sends to itself with the environment of one that came in.
  identity: (c) => c,
  plainIdentity: true,
  // A context does not know its app, but the routes that match belong to one.
  app: (c) => c.req.matchedRoutes[0],
  method: (c) => c.req.method,
  path: (c) => c.req.path,
  header: (c, name) => c.req.header(name),
  remoteAddress,
  clientIp: remoteAddress,
  trustsProxy: (c) => edgeAddress(c) !== undefined,
  route: mostExactPattern,
};

function remoteAddress(c: Context): string | undefined {
  return socketAddress(c) ?? edgeAddress(c);
}

/**
 * Of all patterns that match, base paths included: the first without a `*`, which is a handler's, or else the longest. Read from the
 * context, since `matchedRoutes` of `hono/route`, loaded by `require`, cannot read that of an app which imports Hono.
 */
function mostExactPattern(c: Context): string | undefined {
  let found: string | undefined;
  for (const { path } of c.req.matchedRoutes) {
    if (!/\/\*(\/|$)/.test(path)) return path;
    if (found === undefined || path.length > found.length) found = path;
  }
  return found;
}
