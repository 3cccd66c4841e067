import { forgeableClientIp, nodeReaderOf, type RequestReader, sentPath, trustsEveryAddress } from "@floodgate/core/adapter";
import type { FastifyRequest } from "fastify";

/** Reads Fastify's requests. */
export const fastifyReader: RequestReader<FastifyRequest> = {
  ...nodeReaderOf((request: FastifyRequest) => request.raw),
  app: (request) => request.server,
  path(request) {
    const path = sentPath(request.url);
    // `rewriteUrl` changes the path, and with `useSemicolonDelimiter` a path ends at a semicolon. A rule may mean each of them.
    if (request.url === request.originalUrl && !(/;|\/$|%25/.test(path) && request.routeOptions.url !== path)) return path;
    // Fastify serves `/users/` by the route `/users/:id`, with an empty id, and `/a%252Bb` by `/a%2Bb`. The pattern then stands for the path.
    return [path, path.replace(/;.*/, ""), sentPath(request.originalUrl), request.routeOptions.url ?? path];
  },
  clientIp(request) {
    if (isForgeable(request)) {
      throw forgeableClientIp(
        "Fastify's `trustProxy` trusts everyone",
        'Write the addresses of your proxies: Fastify({ trustProxy: "127.0.0.1, 10.0.0.0/8" }), or (address, hop) => hop < 1 for one proxy in front.',
      );
    }
    return request.ip;
  },
  // A `trustProxy` that does not trust the proxy at hand is a mistake, such as a number, with which Fastify trusts nobody.
  trustsProxy: ({ ips }) => ips !== undefined && ips.length > 1,
  // A request that no route serves has none.
  route: (request) => request.routeOptions.url ?? "/*",
};

/** Whether the app's `trustProxy` trusts everyone. Fastify does not tell its setting, so it is asked about requests that are made up. */
function isForgeable(request: FastifyRequest): boolean {
  // Fastify makes a prototype for each app.
  const prototype: object = Object.getPrototypeOf(request);
  return trustsEveryAddress(prototype, (address, hop) => {
    const headers = { "x-forwarded-for": `${address},`.repeat(hop) + address };
    const { ips } = Object.create(prototype, { raw: { value: { headers, socket: { remoteAddress: address } } } }) as FastifyRequest;
    return ips !== undefined && ips.length > hop + 1;
  });
}
