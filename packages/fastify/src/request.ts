import { FloodgateError } from "@floodgate/core";
import { nodeHeader, type RequestReader, sentPath, trustsEveryAddress } from "@floodgate/core/adapter";
import type { FastifyRequest } from "fastify";

/** Reads Fastify's requests. */
export const fastifyReader: RequestReader<FastifyRequest> = {
  identity: (request) => request,
  app: (request) => request.server,
  method: (request) => request.method,
  path({ url, originalUrl }) {
    const path = sentPath(url);
    // `rewriteUrl` changes the path, and with `useSemicolonDelimiter` a path ends at a semicolon. A rule may mean each of them.
    if (url === originalUrl && !path.includes(";")) return path;
    return [path, path.replace(/;.*/, ""), sentPath(originalUrl)].map((path) => ({ path }));
  },
  header: (request, name) => nodeHeader(request.raw, name),
  remoteAddress: (request) => request.raw.socket.remoteAddress,
  clientIp(request) {
    if (isForgeable(request)) {
      throw new FloodgateError(
        "FLOODGATE_FORGEABLE_CLIENT_IP",
        'Fastify\'s `trustProxy` trusts everyone, so the client IP is the left-most forwarded address, which anyone can forge. Write the addresses of your proxies: Fastify({ trustProxy: "127.0.0.1, 10.0.0.0/8" }), or (address, hop) => hop < 1 for one proxy in front. Or give rateLimit a `clientIp`.',
      );
    }
    return request.ip;
  },
  // A `trustProxy` that does not trust the proxy at hand is a mistake, such as a number, with which Fastify trusts nobody.
  trustsProxy: ({ ips }) => ips !== undefined && ips.length > 1,
  route: (request) => request.routeOptions.url,
};

const forgeable = new WeakMap<object, boolean>();

/** Whether the app's `trustProxy` trusts everyone. Fastify does not tell its setting, so it is asked about requests that are made up. */
function isForgeable(request: FastifyRequest): boolean {
  const prototype: object = Object.getPrototypeOf(request);
  let known = forgeable.get(prototype);
  if (known === undefined) {
    known = trustsEveryAddress((address, hop) => {
      const headers = {
        "x-forwarded-for": Array(hop + 1)
          .fill(address)
          .join(),
      };
      const { ips } = Object.create(prototype, { raw: { value: { headers, socket: { remoteAddress: address } } } }) as FastifyRequest;
      return ips !== undefined && ips.length > hop + 1;
    });
    forgeable.set(prototype, known);
  }
  return known;
}
