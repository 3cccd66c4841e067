import type { RequestReader } from "../src/adapter.js";

/** Reads a request that is any object: `GET /` from one address. */
export const reader: RequestReader<object> = {
  method: () => "GET",
  path: () => "/",
  header: () => undefined,
  remoteAddress: () => "192.0.2.1",
  clientIp: () => "192.0.2.1",
  trustsProxy: () => true,
  route: () => undefined,
};
