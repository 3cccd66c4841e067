import { FloodgateError, invalidOption, shown, wrongOption } from "../support/errors.js";
import { formatIp, type IpAddress } from "../support/ip.js";
import { checkOptions, isHeaderName, wholeNumber } from "../support/options.js";
import { andThen, type Promised } from "../support/promises.js";
import type { RequestReader } from "./request-reader.js";
import { addressBetween, commaBefore, maxHops, singleAddress, TrustedProxies } from "./trusted-proxies.js";

/** Where the client's address comes from. Each of the four forms is safe from forgery if it describes your proxies correctly. */
export type ClientIpOption<Req> =
  /** A function of the request. It returns undefined if the request has no client address. */
  | ((request: Req) => string | undefined | PromiseLike<string | undefined>)
  /**
   * The number of your proxies, each of which appends an address to `X-Forwarded-For`. The client is that many entries from the right. A
   * request with fewer entries did not pass all proxies, so the socket's address counts. Safe only if nobody can bypass a proxy.
   */
  | { readonly trustedHops: number }
  /**
   * The addresses of your proxies: addresses, ranges such as `"10.0.0.0/8"`, and the words `"loopback"`, `"linklocal"` and `"uniquelocal"`.
   * `X-Forwarded-For` is read from the right, and the first address that is not a proxy's is the client's.
   */
  | { readonly trustedProxies: readonly string[] }
  /**
   * A header with one address that a CDN sets (`"cf-connecting-ip"`). It counts only if the request comes from the CDN's ranges, because
   * other clients can set the header too.
   */
  | { readonly header: string; readonly trustedProxies: readonly string[] };

type Resolver<Req> = (request: Req) => Promised<string | undefined>;
type AddressReader<Req> = Pick<RequestReader<Req>, "remoteAddress" | "header">;

const EXAMPLE = 'clientIp: { trustedHops: 1 } or clientIp: { trustedProxies: ["10.0.0.0/8"] }';

/**
 * Checks the option `clientIp` and returns the function that reads the client's address, as a text for `ipKey`. It returns undefined if
 * there is no address. If a forwarded entry is not an address, the last valid one counts.
 * @param where the owner of the option, for error messages.
 * @throws FloodgateError `FLOODGATE_INVALID_OPTION`, `FLOODGATE_UNKNOWN_OPTION`, or `FLOODGATE_FORGEABLE_CLIENT_IP` for a range
 * that trusts everyone.
 */
export function clientIpResolver<Req>(where: string, option: ClientIpOption<Req>, reader: AddressReader<Req>): Resolver<Req> {
  if (typeof option === "function") return fromFunction(option as (request: Req) => unknown);
  const place = `${where}: \`clientIp\``;
  if (typeof option !== "object" || option === null || Array.isArray(option)) {
    throw wrongOption(where, "clientIp", "an object or a function of the request", option, EXAMPLE, []);
  }
  checkOptions(place, option, ["trustedHops", "trustedProxies", "header"], EXAMPLE);
  const { trustedHops, trustedProxies, header: name } = option as Partial<Record<"trustedHops" | "trustedProxies" | "header", unknown>>;
  if (trustedHops !== undefined) {
    if (trustedProxies !== undefined || name !== undefined) {
      throw invalidOption(
        `${place} has both \`trustedHops\` and \`${trustedProxies === undefined ? "header" : "trustedProxies"}\`, which say the same. Write ${EXAMPLE}.`,
      );
    }
    return byHops(hopCount(place, trustedHops), reader);
  }
  if (trustedProxies === undefined) {
    throw name === undefined
      ? invalidOption(`${place} says nothing of your proxies. Write ${EXAMPLE}.`)
      : invalidOption(
          `${place} has a \`header\` but no \`trustedProxies\`, so that anyone who reaches this server could set it. Write clientIp: { header: ${shown(name)}, trustedProxies: ["192.0.2.0/24"] } with the ranges of whoever sets it.`,
        );
  }
  const proxies = trustedProxiesOf(place, trustedProxies);
  if (name === undefined) return behind(proxies, "x-forwarded-for", (list) => proxies.clientOf(list), reader);
  // Two values mean that somebody else set the header too, so neither counts.
  return behind(proxies, headerName(place, name), singleAddress, reader);
}

function byHops<Req>(hops: number, { remoteAddress, header }: AddressReader<Req>): Resolver<Req> {
  return (request) => {
    const list = header(request, "x-forwarded-for");
    const address = list === undefined ? undefined : nthFromRight(list, hops);
    return address === undefined ? remoteAddress(request) : formatIp(address);
  };
}

/** Reads a header of requests that come from the proxies. */
function behind<Req>(
  proxies: TrustedProxies,
  name: string,
  clientOf: (value: string) => string | undefined,
  { remoteAddress, header }: AddressReader<Req>,
): Resolver<Req> {
  return (request) => {
    const peer = remoteAddress(request);
    if (!proxies.has(peer)) return peer;
    const value = header(request, name);
    return (value === undefined ? undefined : clientOf(value)) ?? peer;
  };
}

function nthFromRight(list: string, count: number): IpAddress | undefined {
  let good: IpAddress | undefined;
  let end = list.length;
  for (let hop = 0; hop < count; hop++) {
    // Fewer entries than hops: the request bypassed a proxy, so no entry can be trusted.
    if (end < 0) return undefined;
    const comma = commaBefore(list, end);
    const address = addressBetween(list, comma, end);
    if (address === undefined) return good;
    good = address;
    end = comma;
  }
  return good;
}

function hopCount(place: string, value: unknown): number {
  const hops = wholeNumber(place, "trustedHops", value, 0, 1);
  if (hops <= maxHops) return hops;
  const example = "the number of your proxies: trustedHops: 1";
  throw wrongOption(place, "trustedHops", `at most ${maxHops}`, hops, example, []);
}

function trustedProxiesOf(place: string, value: unknown): TrustedProxies {
  if (Array.isArray(value) && value.length > 0) return new TrustedProxies(`${place}: \`trustedProxies`, value);
  const example = 'trustedProxies: ["10.0.0.0/8"], or leave `clientIp` out where no proxy stands in front';
  throw wrongOption(place, "trustedProxies", "an array of addresses and ranges", value, example, []);
}

function fromFunction<Req>(clientIp: (request: Req) => unknown): Resolver<Req> {
  const checked = (address: unknown): string | undefined => {
    if (typeof address === "string") {
      if (!address.includes(",")) return address;
      throw new FloodgateError(
        "FLOODGATE_NO_CLIENT_IP",
        `\`clientIp\` must answer one address, but answered the list ${shown(address)}, whose start anyone can forge. Write clientIp: { trustedHops: 1 }.`,
      );
    }
    if (address === undefined || address === null) return undefined;
    throw new FloodgateError(
      "FLOODGATE_NO_CLIENT_IP",
      `\`clientIp\` must answer an address as a text, or undefined, but answered ${shown(address)}.`,
    );
  };
  return (request) => andThen<unknown, string | undefined>(clientIp(request), checked);
}

/** Headers that hold more than one address, and what to write for each. */
const moreThanOne: ReadonlyMap<string, string> = new Map([
  ["x-forwarded-for", "a list. Write clientIp: { trustedProxies: [...] } without `header`, which reads that list"],
  ["forwarded", "which holds more. Write clientIp: (request) => ..., with a parser of that header"],
]);

function headerName(place: string, value: unknown): string {
  if (!isHeaderName(value)) throw wrongOption(place, "header", "the name of a header", value, 'header: "cf-connecting-ip"', []);
  const name = value.toLowerCase();
  const more = moreThanOne.get(name);
  if (more !== undefined)
    throw invalidOption(`${place}: \`header\` is for headers that hold one address, but was ${shown(value)}, ${more}.`);
  return name;
}
