/** A range of addresses as numbers of 128 bits; IPv4 as the IPv4-mapped addresses of IPv6, which are the same to core. */
interface Span {
  readonly first: bigint;
  readonly last: bigint;
}

/** Every client of IPv4, and every one that IPv6 has global addresses for. */
const everybody = ["0.0.0.0/0", "2000::/3"].map(spanOf);

/** Whether ranges, which core has found sound, together hold all of IPv4 or all of IPv6. */
export function holdEverybody(ranges: readonly string[]): boolean {
  const spans = ranges.map(spanOf).sort((a, b) => (a.first < b.first ? -1 : 1));
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

function spanOf(range: string): Span {
  const [address = "", bits] = range.split("/");
  const isV6 = address.includes(":");
  const prefix = bits === undefined ? 128 : Number(bits) + (isV6 ? 0 : 96);
  const free = BigInt(128 - prefix);
  const first = (numberOf(isV6 ? address : `::ffff:${address}`) >> free) << free;
  return { first, last: first + (1n << free) - 1n };
}

function numberOf(address: string): bigint {
  // A URL writes each way to say an address as hexadecimal groups.
  const [left = [], right = []] = new URL(`http://[${address}]`).hostname
    .slice(1, -1)
    .split("::")
    .map((groups) => (groups === "" ? [] : groups.split(":")));
  const zeros = Array<string>(8 - left.length - right.length).fill("0");
  return [...left, ...zeros, ...right].reduce((number, group) => (number << 16n) | BigInt(`0x${group}`), 0n);
}
