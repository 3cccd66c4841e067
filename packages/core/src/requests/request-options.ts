import { namedAddress } from "../limits/key.js";
import { atPath, FloodgateError, shown, wrongOption } from "../support/errors.js";
import { checkOptions, wholeNumber } from "../support/options.js";
import type { Promised } from "../support/promises.js";
import { type ClientIpOption, clientIpResolver } from "./client-ip.js";
import type { RequestReader } from "./request-reader.js";

/** What a middleware's options say about reading requests. */
export interface RequestOptions<Req> {
  /** Where the client's address comes from. Default: the framework's own proxy setting. */
  clientIp?: ClientIpOption<Req>;
  /** How many leading bits of an IPv6 address make one client, 1 to 128. Default 56. */
  ipv6Prefix?: number;
  /** The name of a request's plan, for rules with `plans`; undefined if it has none. Runs once a request. */
  plan?: (request: Req) => Promised<string | undefined>;
}

export interface RequestSettings<Req> {
  readonly reader: RequestReader<Req>;
  /** Reads the client's address: the option `clientIp`, or the framework's proxy setting. */
  readonly clientIp: (request: Req) => Promised<string | undefined>;
  /** Whether `clientIp` is a function of the app, which may answer a promise. */
  readonly isOwnClientIp: boolean;
  readonly ipv6Prefix: number;
  readonly plan: RequestOptions<Req>["plan"];
}

export function requestSettings<Req>(where: string, options: RequestOptions<Req>, reader: RequestReader<Req>): RequestSettings<Req> {
  const { clientIp, plan } = options;
  return {
    reader,
    clientIp: clientIp === undefined ? reader.clientIp : atPath(["clientIp"], () => clientIpResolver(where, clientIp, reader)),
    isOwnClientIp: typeof clientIp === "function",
    ipv6Prefix: ipv6PrefixOption(where, options.ipv6Prefix),
    plan,
  };
}

/** @throws FloodgateError unless it is 1 to 128. */
export function ipv6PrefixOption(where: string, option: number | undefined): number {
  const prefix = option === undefined ? 56 : wholeNumber(where, "ipv6Prefix", option, 1, 56);
  if (prefix <= 128) return prefix;
  throw wrongOption(where, "ipv6Prefix", "1 to 128 bits", prefix, "ipv6Prefix: 56");
}

/**
 * The key of a client's address for a limiter, as middlewares count it: IPv4 in one notation, IPv6 as the network of the client, who has
 * 2^64 addresses or more.
 *
 *     limiter.consume(clientKey(request.ip));
 *
 * @param options `ipv6Prefix`: how many leading bits of an IPv6 address make one client, 1 to 128. Default 56.
 * @throws FloodgateError `FLOODGATE_NO_CLIENT_IP` unless it is given an address: all clients without one would share a limit.
 */
export function clientKey(ip: string | undefined, options?: { readonly ipv6Prefix?: number }): string {
  if (options !== undefined) checkOptions("clientKey", options, ["ipv6Prefix"], "clientKey(ip, { ipv6Prefix: 64 })");
  const key = typeof ip === "string" ? namedAddress(ip, ipv6PrefixOption("clientKey", options?.ipv6Prefix)) : undefined;
  if (key !== undefined) return key;
  throw new FloodgateError(
    "FLOODGATE_NO_CLIENT_IP",
    `clientKey takes an IP address, but was given ${shown(ip)}. Write clientKey(request.ip), or decide before the call what a request without an address gets.`,
  );
}
