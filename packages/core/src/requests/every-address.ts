import { FloodgateError } from "../support/errors.js";
import { type IpAddress, type IpRange, parseCidr } from "../support/ip.js";

/** A range of addresses as numbers of 128 bits; IPv4 as the IPv4-mapped addresses of IPv6. */
interface Span {
  readonly first: bigint;
  readonly last: bigint;
}

/** The ranges that contain all client addresses on the internet. */
const everybody = ["0.0.0.0/0", "2000::/3"].map(spanOf);

/** Parts of them without clients: private, reserved or unassigned. */
const nobody = [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/3"],
  "3000::/4",
].map(spanOf);

/** The maximum length of a chain of proxies. */
export const mostHops = 64;

/** Whether ranges together contain all IPv4 clients or all IPv6 clients. Invalid ranges are ignored. */
export function containEveryAddress(ranges: readonly string[]): boolean {
  const spans = [...ranges.flatMap((range) => parseCidr(range) ?? []).map(spanOfRange), ...nobody];
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

/** Addresses of clients all over the world. No list of real proxies contains them all. */
const strangers = [
  ["5.34.56.78", "24.5.6.7", "41.77.12.9", "58.96.3.4", "78.45.6.7", "91.12.34.56", "103.5.6.7", "121.33.44.55", "146.70.1.2"],
  ["177.22.33.44", "186.9.8.7", "200.45.6.7", "212.58.1.2", "222.11.22.33"],
].flat();
const strangersOfIpv6 = ["2003:de:1::1", "2400:4050::1", "2409:8a00::1", "2600:1700::1", "2804:14c::1", "2a02:8070::1", "2c0f:f248::1"];

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
      trustsAll = [strangers, strangersOfIpv6].some((addresses) => addresses.every((address) => Boolean(trusts(address, mostHops))));
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

function spanOf(range: string): Span {
  return spanOfRange(parseCidr(range) as IpRange);
}

function spanOfRange({ address, prefix }: IpRange): Span {
  const first = numberOf(address);
  return { first, last: first + (1n << BigInt(128 - prefix)) - 1n };
}

function numberOf(address: IpAddress): bigint {
  return address.reduce((number, group) => (number << 16n) | BigInt(group), 0n);
}
