import { edgeAddress, hasLeft, type RequestReader, socketAddress, webHeader } from "@floodgate/core/adapter";
import type { Context } from "hono";

export const honoReader: RequestReader<Context> = {
  // Not Node's message: requests that the app sends to itself with the same environment would share it.
  // A context does not know its app, but its matched routes belong to one app.
  app: (c) => c.req.matchedRoutes[0],
  method: (c) => c.req.method,
  path: (c) => c.req.path,
  header: (c, name) => webHeader(c.req.raw, name),
  remoteAddress,
  clientIp: remoteAddress,
  hasLeft: (c) => hasLeft(c.req.raw, c.env),
  trustsProxy: (c) => edgeAddress(c.req.raw, c.env) !== undefined,
  route: mostExactPattern,
};

function remoteAddress(c: Context): string | undefined {
  return socketAddress(c.req.raw, c.env) ?? edgeAddress(c.req.raw, c.env);
}

/**
 * The first matched pattern without a `*`, which is a handler's, else the longest one. Patterns include base paths. Read from the context,
 * because `matchedRoutes` of `hono/route`, if loaded by `require`, does not work for an app that imports Hono.
 */
function mostExactPattern(c: Context): string | undefined {
  const patterns = c.req.matchedRoutes.map(({ path }) => path);
  return patterns.find((path) => !/\/\*(\/|$)/.test(path)) ?? patterns.sort((a, b) => b.length - a.length)[0];
}
