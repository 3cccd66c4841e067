import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { containEveryAddress, trustsEveryAddress } from "../../src/requests/trusted-proxies.js";

/** All of IPv4, or all global IPv6 addresses, split into 2^bits ranges. */
const pieces = fc.tuple(fc.boolean(), fc.nat(5)).chain(([isV6, bits]) => {
  const all = Array.from({ length: 2 ** bits }, (_, i) =>
    isV6 ? `${(0x2000 + i * 2 ** (13 - bits)).toString(16)}::/${3 + bits}` : `${i * 2 ** (8 - bits)}.0.0.0/${bits}`,
  );
  return fc.shuffledSubarray(all, { minLength: all.length });
});

/** Ranges that do not replace a missing piece. */
const others = fc.array(fc.constantFrom("10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "::1", "::ffff:10.0.0.0/104", "fd00::/8"));

describe("a trust function", () => {
  it.each<[boolean, (address: string, hop: number) => unknown]>([
    [true, () => true],
    [true, async () => false],
    [true, (address) => address.includes(".")],
    [true, (_, hop) => hop < 1000],
    [true, (_, hop) => hop < Number.POSITIVE_INFINITY],
    [false, () => false],
    [false, (_, hop) => hop < 2],
    [false, (address) => address.startsWith("10.")],
    [false, (address) => Number(address.split(".")[0]) < 128],
    [
      false,
      () => {
        throw new Error("not an address of ours");
      },
    ],
  ])("trusts everybody: %s, by %s", (expected, trusts) => {
    expect(trustsEveryAddress({}, trusts)).toBe(expected);
  });
});

describe("a list of ranges", () => {
  it("covers everyone if its pieces add up to all addresses, whatever else it contains", () => {
    fc.assert(
      fc.property(pieces, others, (pieces, others) => {
        expect(containEveryAddress([...others, ...pieces])).toBe(true);
      }),
    );
  });

  it("covers everyone if only unassigned addresses are missing, and not otherwise", () => {
    fc.assert(
      fc.property(pieces, others, ([missing = "", ...pieces], others) => {
        const isUnassigned = /^3[\da-f]{3}::|^(22[4-9]|2[3-5]\d)\./.test(missing);
        expect(containEveryAddress([...pieces, ...others])).toBe(isUnassigned);
      }),
    );
  });

  it.each(["0.0.0.0/0", "10.1.2.3/0", "::/0", "::ffff:0:0/96", "::ffff:0.0.0.0/96", "::/1", "::/80", "2000::/3", "2000::/4"])(
    "covers everyone with %s alone",
    (range) => {
      expect(containEveryAddress([range])).toBe(true);
    },
  );

  it.each(["128.0.0.0/1", "::ffff:0:0/97", "fc00::/7", "::1", "2001:db8::/32", "8000::/1"])("does not cover everyone with %s", (range) => {
    expect(containEveryAddress([range])).toBe(false);
  });
});
