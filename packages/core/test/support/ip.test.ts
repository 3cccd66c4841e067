import { BlockList, isIP, isIPv4, SocketAddress } from "node:net";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { describe, expect, it } from "vitest";
import { runs } from "../../../../test/runs.js";
import { contains, formatIp, type IpAddress, ipKey, parseCidr, parseIp } from "../../src/support/ip.js";

const groups = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff })), { minLength: 8, maxLength: 8 });
const octets = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 4, maxLength: 4 });
const quad = octets.map((four) => four.join("."));

/** Any address: IPv6 of all shapes, half of them with embedded IPv4. */
const address: fc.Arbitrary<number[]> = fc.oneof(
  groups,
  groups.map((eight) => [0, 0, 0, 0, 0, 0xffff, ...eight.slice(6)]),
  groups.map((eight) => [0x64, 0xff9b, 0, 0, 0, 0, ...eight.slice(6)]),
);

/** All notations of eight groups: with every possible "::" and without, with and without a dotted end, upper case, leading zeros. */
function notations(eight: readonly number[]): string[] {
  const texts: string[] = [];
  for (const dotted of [false, true]) {
    for (const width of [1, 4]) {
      const parts = eight.map((group) => group.toString(16).padStart(width, "0"));
      const [c, d] = eight.slice(6) as [number, number];
      if (dotted) parts.splice(6, 2, `${c >> 8}.${c & 255}.${d >> 8}.${d & 255}`);
      texts.push(parts.join(":"));
      const whole = dotted ? 6 : 8;
      for (let from = 0; from < whole; from++) {
        for (let to = from + 1; to <= whole && eight[to - 1] === 0; to++) {
          texts.push(`${parts.slice(0, from).join(":")}::${parts.slice(to).join(":")}`);
        }
      }
    }
  }
  return texts.flatMap((text) => [text, text.toUpperCase()]);
}

function plain(eight: readonly number[]): string {
  return eight.map((group) => group.toString(16)).join(":");
}

/** Strings that are almost addresses. */
const nearly = fc.oneof(
  fc.string({ unit: fc.constantFrom(..."0123456789abcfF.:%[]/x -".split("")), maxLength: 45 }),
  fc.string({ unit: fc.constantFrom("::", ":", "0", "ffff", "1.2.3.4", "12345", ".", "255", "256", "00", "g"), maxLength: 12 }),
  fc
    .tuple(address, fc.nat(100), fc.constantFrom("", ":", "::", "0", ".", "1", "g", " ", "%", "\0", "é"))
    .chain(([eight, cut, extra]) =>
      fc
        .constantFrom(...notations(eight))
        .map((text) => text.slice(0, cut % (text.length + 1)) + extra + text.slice(cut % (text.length + 1))),
    ),
);

/** Strings that are not addresses; first those with spaces and the empty one. */
const NO_ADDRESS = ["", " ", " 1.2.3.4", "1.2.3.4 ", "1.2.3.4\n", "fe80::1%a b"].concat(
  `
  unknown _hidden localhost 0177.0.0.1 010.0.0.1 1.2.3.00 0x7f.0.0.1 0x7f000001 2130706433 127.1 1.2.3 1.2.3.4. .1.2.3.4
  1..2.3 1.2.3.256 1.2.3.4.5 1.2.3.-4 1.2.3.4/32 1.2.3.4%eth0 [1.2.3.4] 1.2.3.4: 1.2.3.4:65536 1.2.3.4:080 1.2.3.4:80:80
  1.2.3.4:http １.2.3.4 : ::: 1:::2 1::2::3 :1:: 1: 1:2:3:4:5:6:7 1:2:3:4:5:6:7: 1:2:3:4:5:6:7:8:9 1:2:3:4:5:6:7::8
  ::1:2:3:4:5:6:7:8 1:2:3:4:5:6:7:1.2.3.4 ::12345 ::g ::ffff:1.2.3 ::ffff:01.2.3.4 ::1.2.3.4:5 1.2.3.4:: fe80::1%
  fe80::1%a/b %eth0 [::1 ::1] [::1]443 [::1]: [::1]:65536 [] [[::1]] ::1/128 2001:db8::1,2001:db8::2
`
    .trim()
    .split(/\s+/),
);

/** Strings that are not ranges; first those with spaces and the empty one. */
const NO_RANGE = ["", "10.0.0.0/8 ", " 10.0.0.0/8"].concat(
  `
  /8 10.0.0.0/ 10.0.0.0/33 10.0.0.0/-1 10.0.0.0/08 10.0.0.0/8/8 10.0.0.0/255.0.0.0 10.0.0.0/1e1 10/8 10.0.0.0:80
  010.0.0.0/8 2001:db8::/129 [2001:db8::]/32 fe80::1%eth0/64 ::ffff:10.0.0.0/8 ::ffff:10.0.0.0/95 example.com *
`
    .trim()
    .split(/\s+/),
);

describe("parseIp", () => {
  it("accepts what net.isIP accepts", () => {
    fc.assert(
      fc.property(fc.oneof(nearly, quad, fc.ipV4(), fc.ipV6(), fc.string()), (text) => {
        // net.isIP rejects brackets and ports, and accepts only letters and digits in zone ids.
        fc.pre(!text.includes("[") && !text.includes("%") && !/^[^:]*\.[^:]*:\d+$/.test(text));
        expect(parseIp(text) !== undefined).toBe(isIP(text) !== 0);
      }),
      runs(3000),
    );
  });

  it("reads what ipaddr.js reads", () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV6(), quad, address.map(plain)), (text) => {
        // ipaddr.js takes the deprecated "::1.2.3.4" for "::ffff:1.2.3.4".
        fc.pre(!/^::\d+\.\d/.test(text));
        const theirs = ipaddr.parse(text);
        const v6 = theirs instanceof ipaddr.IPv4 ? theirs.toIPv4MappedAddress() : (theirs as ipaddr.IPv6);
        expect(parseIp(text)).toEqual(v6.parts);
      }),
      runs(2000),
    );
  });

  it("reads all notations of an address as the same address", () => {
    fc.assert(
      fc.property(address, (eight) => {
        for (const text of notations(eight)) {
          expect(isIP(text), text).toBe(6);
          expect(parseIp(text), text).toEqual(eight);
        }
      }),
      runs(100),
    );
  });

  it("drops zone ids, brackets and ports", () => {
    const inner: [string, string][] = [
      ["fe80::1%eth0", "fe80::1"],
      ["fe80::1%25eth0", "fe80::1"],
      ["fe80::1%12", "fe80::1"],
      ["::ffff:203.0.113.9%eth0.100", "::ffff:203.0.113.9"],
      ["[2001:db8::1]", "2001:db8::1"],
      ["[2001:db8::1]:443", "2001:db8::1"],
      ["[2001:db8::1]:0", "2001:db8::1"],
      ["[fe80::1%eth0]:65535", "fe80::1"],
      ["[::ffff:203.0.113.9]:443", "203.0.113.9"],
      ["203.0.113.9:5544", "203.0.113.9"],
      ["203.0.113.9", "::ffff:cb00:7109"],
    ];
    for (const [text, same] of inner) {
      expect(parseIp(text), text).toEqual(parseIp(same));
      expect(parseIp(text), text).toBeDefined();
    }
  });

  it.each(NO_ADDRESS)("rejects %j", (text) => {
    expect(parseIp(text)).toBeUndefined();
    expect(ipKey(text, 56)).toBeUndefined();
  });

  it("rejects long strings without reading them", () => {
    for (const text of ["1".repeat(1e6), ":".repeat(1e6), "[".repeat(1e6), `::1%${"a".repeat(1e6)}`, `1.2.3.4:${"0".repeat(1e6)}`]) {
      expect(parseIp(text)).toBeUndefined();
      expect(ipKey(text, 56)).toBeUndefined();
      expect(parseCidr(text)).toBeUndefined();
    }
  });
});

describe("formatIp", () => {
  it("writes IPv6 as in RFC 5952, and IPv4 as a dotted quad", () => {
    const written: [string, string][] = [
      ["::", "::"],
      ["::1", "::1"],
      ["1::", "1::"],
      ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
      ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
      ["2001:0:0:1:0:0:0:1", "2001:0:0:1::1"],
      ["1:0:0:0:0:0:0:0", "1::"],
      ["0:2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"],
      ["::ffff:cb00:7109", "203.0.113.9"],
      ["::1.2.3.4", "::102:304"],
    ];
    for (const [text, canonical] of written) expect(formatIp(parseIp(text) as IpAddress)).toBe(canonical);
  });

  it("writes the same as Node and ipaddr.js, and reads it back", () => {
    fc.assert(
      fc.property(groups, (eight) => {
        fc.pre(eight.slice(0, 5).some((group) => group !== 0));
        const text = formatIp(eight as unknown as IpAddress);
        expect(text).toBe(new SocketAddress({ address: plain(eight), family: "ipv6" }).address);
        expect(text).toBe(new ipaddr.IPv6(eight).toRFC5952String());
        expect(parseIp(text)).toEqual(eight);
      }),
      runs(2000),
    );
  });
});

describe("ipKey", () => {
  it("returns valid dotted IPv4 unchanged, and only that", () => {
    fc.assert(
      fc.property(fc.oneof(quad, fc.string({ unit: fc.constantFrom(..."0125.".split("")), maxLength: 16 })), (text) => {
        expect(ipKey(text, 56)).toBe(isIPv4(text) ? text : undefined);
      }),
      runs(3000),
    );
  });

  it("unwraps IPv4-mapped and NAT64 addresses in all notations", () => {
    fc.assert(
      fc.property(octets, ([a, b, c, d]) => {
        const hex = [((a as number) << 8) | (b as number), ((c as number) << 8) | (d as number)];
        const key = `${a}.${b}.${c}.${d}`;
        for (const text of [...notations([0, 0, 0, 0, 0, 0xffff, ...hex]), ...notations([0x64, 0xff9b, 0, 0, 0, 0, ...hex])]) {
          expect(ipKey(text, 56), text).toBe(key);
        }
        expect(ipKey(`${key}:5544`, 56)).toBe(key);
        expect(ipKey(`[::ffff:${key}]:5544`, 56)).toBe(key);
      }),
      runs(100),
    );
  });

  it("returns one key for all notations of an address", () => {
    fc.assert(
      fc.property(address, fc.integer({ min: 0, max: 128 }), (eight, prefix) => {
        const keys = notations(eight).flatMap((text) =>
          [text, `${text}%eth0`, `[${text}]`, `[${text}%1]:443`].map((form) => ipKey(form, prefix)),
        );
        expect(new Set(keys).size).toBe(1);
        expect(keys[0]).toBeDefined();
      }),
      runs(100),
    );
  });

  it("masks IPv6 to the prefix like ipaddr.js", () => {
    fc.assert(
      fc.property(groups, fc.integer({ min: 0, max: 128 }), (eight, prefix) => {
        fc.pre(eight.slice(0, 5).some((group) => group !== 0) && eight[0] !== 0x64);
        const text = plain(eight);
        const network = ipaddr.IPv6.networkAddressFromCIDR(`${text}/${prefix}`);
        expect(ipKey(text, prefix)).toBe(`${network.toRFC5952String()}/${prefix}`);
      }),
      runs(2000),
    );
  });

  it("groups the addresses of one subscriber, and separates neighbours", () => {
    expect(ipKey("2001:db8:0:1ff:1:2:3:4", 56)).toBe("2001:db8:0:100::/56");
    expect(ipKey("2001:db8:0:100::", 56)).toBe("2001:db8:0:100::/56");
    expect(ipKey("2001:db8:0:200::", 56)).toBe("2001:db8:0:200::/56");
    expect(ipKey("2001:db8::1", 128)).toBe("2001:db8::1/128");
    expect(ipKey("2001:db8::1", 0)).toBe("::/0");
    // A short prefix never groups IPv4 clients.
    expect(ipKey("::ffff:203.0.113.9", 32)).not.toBe(ipKey("::ffff:203.0.113.8", 32));
    expect(ipKey("64:ff9b::203.0.113.9", 32)).not.toBe(ipKey("64:ff9b::203.0.113.8", 32));
    // NAT64 local prefixes, and prefixes that resemble the well-known one, are plain IPv6.
    expect(ipKey("64:ff9b:1::203.0.113.9", 56)).toBe("64:ff9b:1::/56");
    expect(ipKey("64:ff9b::1:203.0.113.9", 128)).toBe("64:ff9b::1:cb00:7109/128");
  });
});

describe("parseCidr and contains", () => {
  it("contains the same addresses as net.BlockList", () => {
    const range = fc.oneof(
      fc.tuple(quad, fc.integer({ min: 0, max: 32 }), fc.constant("ipv4" as const)),
      fc.tuple(groups.map(plain), fc.integer({ min: 0, max: 128 }), fc.constant("ipv6" as const)),
    );
    // The other address is random, or the range's base with one bit flipped, to test both sides of the edge.
    fc.assert(
      fc.property(range, address, fc.integer({ min: 0, max: 128 }), ([base, prefix, family], random, flip) => {
        const list = new BlockList();
        list.addSubnet(base, prefix, family);
        const ours = parseCidr(`${base}/${prefix}`);
        fc.pre(ours !== undefined);
        const near = [...(parseIp(base) as IpAddress)];
        if (flip < 128) near[flip >> 4] = (near[flip >> 4] as number) ^ (1 << (15 - (flip & 15)));
        for (const eight of [near, random]) {
          const text = plain(eight);
          expect(contains(ours as NonNullable<typeof ours>, parseIp(text) as IpAddress), text).toBe(list.check(text, "ipv6"));
        }
      }),
      runs(3000),
    );
  });

  it("compares addresses, not notations", () => {
    const within = (range: string, text: string) =>
      contains(parseCidr(range) as NonNullable<ReturnType<typeof parseCidr>>, parseIp(text) as IpAddress);
    for (const text of ["10.1.2.3", "::ffff:10.1.2.3", "::ffff:a01:203", "0:0:0:0:0:FFFF:0A01:0203", "[::ffff:10.1.2.3]:443"]) {
      expect(within("10.0.0.0/8", text), text).toBe(true);
      expect(within("::ffff:10.0.0.0/104", text), text).toBe(true);
      expect(within("::ffff:a00:0/104", text), text).toBe(true);
      expect(within("0.0.0.0/0", text), text).toBe(true);
      expect(within("11.0.0.0/8", text), text).toBe(false);
      expect(within("10.1.2.3", text), text).toBe(true);
      expect(within("10.1.2.2/31", text), text).toBe(true);
      expect(within("10.1.2.4", text), text).toBe(false);
    }
    expect(within("0.0.0.0/0", "::1")).toBe(false);
    // A NAT64 address embeds a client's IPv4, so it is not a private address.
    expect(within("10.0.0.0/8", "64:ff9b::10.0.0.1")).toBe(false);
    expect(within("10.0.0.0/8", "::10.0.0.1")).toBe(false);
    expect(within("fe80::/10", "fe80::1%eth0")).toBe(true);
    expect(within("fe80::/10", "fec0::1")).toBe(false);
    expect(within("2001:db8::1", "2001:db8:0::1")).toBe(true);
    expect(within("2001:db8::1/127", "2001:db8::")).toBe(true);
    expect(within("::/0", "2001:db8::")).toBe(true);
  });

  it.each(NO_RANGE)("rejects the range %j", (text) => {
    expect(parseCidr(text)).toBeUndefined();
  });
});
