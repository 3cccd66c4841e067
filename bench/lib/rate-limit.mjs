import { RateLimit } from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";

/** Decides requests that are described by `{ method, path, headers, user }` under rules, in memory and without a framework. */
export function limitOf(rules) {
  const reader = {
    identity: (request) => request,
    method: ({ method }) => method,
    path: ({ path }) => path,
    header: ({ headers }, name) => headers[name],
    remoteAddress: () => "192.0.2.1",
    clientIp: () => "192.0.2.1",
    trustsProxy: () => true,
    route: () => undefined,
  };
  return new RateLimit("bench", { rules, keys: { user: ({ user }) => user } }, [], reader, () => memoryStore());
}
