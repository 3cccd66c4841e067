import { FloodgateError, invalidOption, shown } from "../support/errors.js";
import { contains, formatIp, type IpAddress, type IpRange, isQuad, parseCidr, parseIp } from "../support/ip.js";
import { didYouMean } from "../support/options.js";

/** A longer entry, including its spaces, is not an address. */
const maxEntry = 128;

const tooLong = -2;

/** The names that proxy-addr defines, which Express uses. */
const namedRanges: Readonly<Record<string, readonly string[]>> = {
  loopback: ["127.0.0.0/8", "::1"],
  linklocal: ["169.254.0.0/16", "fe80::/10"],
  uniquelocal: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"],
};

/** Proxies whose word about a client's address is believed. */
export class TrustedProxies {
  readonly #ranges: readonly IpRange[];

  /**
   * @param what the list's name, for error messages.
   * @param list addresses, ranges, and the words `"loopback"`, `"linklocal"` and `"uniquelocal"`.
   * @throws FloodgateError `FLOODGATE_INVALID_OPTION`, or `FLOODGATE_FORGEABLE_CLIENT_IP` if the ranges trust everyone.
   */
  constructor(what: string, list: readonly unknown[]) {
    this.#ranges = rangesOf(what, list);
  }

  has(address: string | undefined): boolean {
    const parsed = address === undefined ? undefined : parseIp(address);
    return parsed !== undefined && this.#contain(parsed);
  }

  /**
   * The client in a list such as `X-Forwarded-For`: from the right, the first address that is not a proxy's. If an entry is not an address,
   * the last valid one counts. Undefined if the list has none.
   */
  clientOf(list: string): string | undefined {
    // A single address is the client's, whether it is a proxy's or not.
    if (isQuad(list)) return list;
    let good: IpAddress | undefined;
    let end = list.length;
    for (let hop = 0; hop < maxHops && end >= 0; hop++) {
      const comma = commaBefore(list, end);
      const address = addressBetween(list, comma, end);
      if (address === undefined) break;
      good = address;
      if (!this.#contain(address)) break;
      end = comma;
    }
    // Formatted, because a key that is a slice of the header would keep the whole header in memory.
    return good === undefined ? undefined : formatIp(good);
  }

  #contain(address: IpAddress): boolean {
    for (const range of this.#ranges) if (contains(range, address)) return true;
    return false;
  }
}

/** The address in a header that holds one, with or without a port; undefined for anything else. */
export function singleAddress(value: string): string | undefined {
  if (isQuad(value)) return value;
  const address = value.length > maxEntry ? undefined : parseIp(value.trim());
  return address === undefined ? undefined : formatIp(address);
}

/** The index of the comma before the entry that ends at `end`; -1 for the first entry, `tooLong` if the entry is too long. */
export function commaBefore(list: string, end: number): number {
  const least = end > maxEntry ? end - maxEntry : 0;
  for (let i = end - 1; i >= least; i--) if (list.charCodeAt(i) === 0x2c) return i;
  return least === 0 ? -1 : tooLong;
}

export function addressBetween(list: string, comma: number, end: number): IpAddress | undefined {
  return comma === tooLong ? undefined : parseIp(list.slice(comma + 1, end).trim());
}

function rangesOf(where: string, list: readonly unknown[]): IpRange[] {
  const texts: string[] = [];
  const ranges: IpRange[] = [];
  list.forEach((entry: unknown, index) => {
    const what = `${where}[${index}]\``;
    for (const text of typeof entry === "string" && Object.hasOwn(namedRanges, entry) ? (namedRanges[entry] as string[]) : [entry]) {
      ranges.push(rangeOf(what, text));
      texts.push(text as string);
    }
    if (typeof entry === "string" && containEveryAddress([entry])) throw trustsAll(`${what} is ${shown(entry)}, which trusts`);
  });
  // Trusting all of IPv4 or IPv6 means trusting the client.
  if (containEveryAddress(texts)) throw trustsAll(`${where}\` are ranges that together trust`);
  return ranges;
}

function trustsAll(what: string): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_FORGEABLE_CLIENT_IP",
    `${what} everyone, so that any client could choose its address. Write the ranges of your own proxies, or their number: trustedHops: 1.`,
  );
}

function rangeOf(what: string, value: unknown): IpRange {
  const range = typeof value === "string" ? parseCidr(value) : undefined;
  if (range !== undefined) return range;
  const words = Object.keys(namedRanges);
  const hint = didYouMean(value, words) || ' Write "10.0.0.0/8".';
  throw invalidOption(
    `${what} must be an address, a range, or one of ${words.map((word) => JSON.stringify(word)).join(", ")}, but was ${shown(value)}.${hint}`,
  );
}

/** A range of addresses as numbers of 128 bits; IPv4 as the IPv4-mapped addresses of IPv6. */
interface Span {
  readonly first: bigint;
  readonly last: bigint;
}

/** The ranges that contain all client addresses on the internet. */
const everybody = spansOf(["0.0.0.0/0", "2000::/3"]);

/** Parts of them without clients: private, reserved or unassigned. */
const nobody = spansOf([
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/3"],
  "3000::/4",
]);

/** The maximum length of a chain of proxies. */
export const maxHops = 64;

/** Whether ranges together contain all IPv4 clients or all IPv6 clients. Invalid ranges are ignored. */
export function containEveryAddress(ranges: readonly string[]): boolean {
  const spans = [...spansOf(ranges), ...nobody];
  spans.sort((a, b) => (a.first < b.first ? -1 : 1));
  return everybody.some(({ first, last }) => {
    let missing = first;
    for (const span of spans) {
      if (span.first > missing) return false;
      if (span.last >= missing) missing = span.last + 1n;
      if (missing > last) return true;
    }
    return false;
  });
}

/** Addresses of clients all over the world, by version of IP. No list of real proxies contains all of one. */
const strangers = [
  "5.34.56.78 24.5.6.7 41.77.12.9 58.96.3.4 78.45.6.7 91.12.34.56 103.5.6.7 121.33.44.55 146.70.1.2 177.22.33.44 186.9.8.7 200.45.6.7 212.58.1.2 222.11.22.33",
  "2003:de:1::1 2400:4050::1 2409:8a00::1 2600:1700::1 2804:14c::1 2a02:8070::1 2c0f:f248::1",
];

const known = new WeakMap<object, boolean>();

/**
 * Whether a proxy setting trusts everybody, as far as examples can tell. Asked once per setting.
 * @param setting an object that stands for the setting.
 * @param trusts whether the setting trusts a proxy with this address, `hop` proxies away from this server.
 */
export function trustsEveryAddress(setting: object, trusts: (address: string, hop: number) => unknown): boolean {
  let trustsAll = known.get(setting);
  if (trustsAll === undefined) {
    try {
      trustsAll = strangers.some((addresses) => addresses.split(" ").every((address) => Boolean(trusts(address, maxHops))));
    } catch {
      trustsAll = false;
    }
    known.set(setting, trustsAll);
  }
  return trustsAll;
}

/**
 * The error for a proxy setting of a framework that trusts everybody.
 * @param setting what the framework's setting is.
 * @param advice what to write.
 */
export function forgeableClientIp(setting: string, advice: string): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_FORGEABLE_CLIENT_IP",
    `${setting}, so the client IP is the left-most forwarded address, which anyone can forge. ${advice} Or give rateLimit a \`clientIp\`.`,
  );
}

function spansOf(ranges: readonly string[]): Span[] {
  const parsed = ranges.map(parseCidr).filter((range) => range !== undefined);
  return parsed.map(({ address, prefix }) => {
    const first = address.reduce((number, group) => (number << 16n) | BigInt(group), 0n);
    return { first, last: first + (1n << BigInt(128 - prefix)) - 1n };
  });
}
