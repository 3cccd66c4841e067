import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ClientIpOption, clientIpResolver } from "../../src/requests/client-ip.js";
import { FloodgateError } from "../../src/support/errors.js";

interface Request {
  readonly peer?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

function resolver(option: ClientIpOption<Request>) {
  return clientIpResolver<Request>("rateLimit", option, {
    remoteAddress: (request) => request.peer,
    header: (request, name) => request.headers?.[name],
  });
}

function clientOf(option: ClientIpOption<Request>, peer: string | undefined, forwarded?: string, name = "x-forwarded-for") {
  return resolver(option)({ peer, headers: forwarded === undefined ? {} : { [name]: forwarded } });
}

type Case = readonly [what: string, peer: string | undefined, forwarded: string | undefined, client: string | undefined];

describe("trustedHops", () => {
  const two: Case[] = [
    ["both proxies passed", "10.0.0.2", "198.51.100.7, 10.0.0.1", "198.51.100.7"],
    ["a forged entry in front", "10.0.0.2", "6.6.6.6, 198.51.100.7, 10.0.0.1", "198.51.100.7"],
    ["many forged entries", "10.0.0.2", `${"6.6.6.6, ".repeat(50)}198.51.100.7, 10.0.0.1`, "198.51.100.7"],
    ["garbage in front", "10.0.0.2", "<script>, , unknown, 198.51.100.7, 10.0.0.1", "198.51.100.7"],
    ["a proxy skipped", "10.0.0.2", "198.51.100.7", "10.0.0.2"],
    ["all proxies skipped", "198.51.100.7", undefined, "198.51.100.7"],
    ["all proxies skipped, one entry forged", "198.51.100.7", "6.6.6.6", "198.51.100.7"],
    ["an empty header", "198.51.100.7", "", "198.51.100.7"],
    ["only commas", "198.51.100.7", ",,,,", "198.51.100.7"],
    ["the client hidden by the outer proxy", "10.0.0.2", "6.6.6.6, unknown, 10.0.0.1", "10.0.0.1"],
    ["the outer proxy hidden", "10.0.0.2", "198.51.100.7, unknown", "10.0.0.2"],
    ["a trailing comma", "10.0.0.2", "198.51.100.7, 10.0.0.1,", "10.0.0.2"],
    ["ports and brackets", "10.0.0.2", "[2001:db8::7]:5544, 10.0.0.1:80", "2001:db8::7"],
    ["lines joined, spaces and tabs", "10.0.0.2", "6.6.6.6,198.51.100.7\t ,\t10.0.0.1 ", "198.51.100.7"],
    ["a mapped entry", "10.0.0.2", "::ffff:198.51.100.7,10.0.0.1", "198.51.100.7"],
    ["an octal spelling", "10.0.0.2", "0306.063.0144.07,10.0.0.1", "10.0.0.1"],
    ["a Unix socket", undefined, "198.51.100.7, 10.0.0.1", "198.51.100.7"],
    ["a Unix socket, a proxy skipped", undefined, "198.51.100.7", undefined],
    ["no address at all", undefined, undefined, undefined],
  ];
  it.each(two)("2: %s", (_, peer, forwarded, client) => {
    expect(clientOf({ trustedHops: 2 }, peer, forwarded)).toBe(client);
  });

  it("1: takes the entry that the proxy in front appended", () => {
    expect(clientOf({ trustedHops: 1 }, "10.0.0.1", "6.6.6.6, 198.51.100.7")).toBe("198.51.100.7");
    expect(clientOf({ trustedHops: 1 }, "10.0.0.1", "198.51.100.7")).toBe("198.51.100.7");
    expect(clientOf({ trustedHops: 1 }, "10.0.0.1")).toBe("10.0.0.1");
  });

  it("0: takes the socket's address and ignores forwarded ones", () => {
    expect(clientOf({ trustedHops: 0 }, "198.51.100.7", "6.6.6.6")).toBe("198.51.100.7");
  });

  it("ignores everything before the proxies' own entries", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), fc.integer({ min: 1, max: 5 }), (forged, hops) => {
        const appended = ["198.51.100.7", ...Array.from({ length: hops - 1 }, (_, i) => `10.0.0.${i + 1}`)].join(", ");
        expect(clientOf({ trustedHops: hops }, "10.0.0.99", `${forged}, ${appended}`)).toBe("198.51.100.7");
      }),
    );
  });
});

describe("trustedProxies", () => {
  const trusted = { trustedProxies: ["loopback", "10.0.0.0/8", "2001:db8:1::/48"] };
  const cases: Case[] = [
    ["one proxy", "10.0.0.2", "198.51.100.7", "198.51.100.7"],
    ["a chain", "10.0.0.2", "198.51.100.7, 2001:db8:1::9, 10.0.0.1", "198.51.100.7"],
    ["a forged entry in front", "10.0.0.2", "6.6.6.6, 198.51.100.7, 10.0.0.1", "198.51.100.7"],
    ["a forged proxy in front", "10.0.0.2", "6.6.6.6, 10.0.0.1, 198.51.100.7", "198.51.100.7"],
    ["a stranger as peer", "198.51.100.7", "6.6.6.6", "198.51.100.7"],
    ["a stranger who claims a proxy", "198.51.100.7", "6.6.6.6, 10.0.0.1", "198.51.100.7"],
    ["a peer that only resembles a proxy", "64:ff9b::10.0.0.2", "6.6.6.6", "64:ff9b::10.0.0.2"],
    ["a mapped peer", "::ffff:10.0.0.2", "198.51.100.7", "198.51.100.7"],
    ["a mapped peer, in hex", "::ffff:a00:2", "198.51.100.7", "198.51.100.7"],
    ["a peer on IPv6 loopback", "::1", "198.51.100.7", "198.51.100.7"],
    ["a mapped proxy in the chain", "10.0.0.2", "6.6.6.6, 198.51.100.7, ::ffff:a00:1", "198.51.100.7"],
    ["no header", "10.0.0.2", undefined, "10.0.0.2"],
    ["an empty header", "10.0.0.2", "", "10.0.0.2"],
    ["only proxies", "10.0.0.2", "10.0.0.4, 10.0.0.3", "10.0.0.4"],
    ["garbage last", "10.0.0.2", "198.51.100.7, unknown", "10.0.0.2"],
    ["garbage behind a proxy", "10.0.0.2", "6.6.6.6, _hidden, 10.0.0.1", "10.0.0.1"],
    ["an octal spelling of a proxy", "10.0.0.2", "6.6.6.6, 012.0.0.1", "10.0.0.2"],
    ["ports", "10.0.0.2", "198.51.100.7:1234, 10.0.0.1:5544", "198.51.100.7"],
    ["IPv6 with brackets, port and zone", "10.0.0.2", "6.6.6.6, [2001:db8:2::1%x]:1", "2001:db8:2::1"],
    ["a Unix socket", undefined, "6.6.6.6", undefined],
    ["a peer that is no address", "pipe", "6.6.6.6", "pipe"],
  ];
  it.each(cases)("%s", (_, peer, forwarded, client) => {
    expect(clientOf(trusted, peer, forwarded)).toBe(client);
  });

  it("accepts the range names of proxy-addr", () => {
    const words: [string, string[], string[]][] = [
      ["loopback", ["127.0.0.1", "127.255.255.255", "::1", "::ffff:7f00:1"], ["128.0.0.1", "::2", "10.0.0.1"]],
      ["linklocal", ["169.254.0.1", "fe80::1%eth0", "febf::1"], ["169.253.0.1", "fec0::1"]],
      [
        "uniquelocal",
        ["10.255.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "fc00::1", "fdff::1"],
        ["172.32.0.0", "192.169.0.1", "fe00::1"],
      ],
    ];
    for (const [word, own, strange] of words) {
      for (const peer of own) expect(clientOf({ trustedProxies: [word] }, peer, "198.51.100.7"), peer).toBe("198.51.100.7");
      for (const peer of strange) expect(clientOf({ trustedProxies: [word] }, peer, "198.51.100.7"), peer).toBe(peer);
    }
  });

  it("ignores everything before the first untrusted entry", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), fc.nat(5), (forged, proxies) => {
        const appended = ["198.51.100.7", ...Array.from({ length: proxies }, (_, i) => `10.0.0.${i}`)].join(", ");
        expect(clientOf(trusted, "10.0.0.99", `${forged}, ${appended}`)).toBe("198.51.100.7");
        expect(clientOf(trusted, "198.51.100.8", forged)).toBe("198.51.100.8");
      }),
    );
  });

  it("reads only a bounded part of a long header", () => {
    const thousand = Array.from({ length: 1000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
    expect(clientOf(trusted, "10.9.9.9", thousand.join(", "))).toBe(thousand[1000 - 64]);
    expect(clientOf({ trustedHops: 64 }, "10.9.9.9", thousand.join(", "))).toBe(thousand[1000 - 64]);
    for (const filler of ["x", ",", " ", "1.1.1.1,", "10.0.0.1", "[", "10.0.0.1, "]) {
      const long = filler.repeat(Math.ceil(100_000 / filler.length));
      expect(clientOf(trusted, "10.9.9.9", `${long}, 198.51.100.7, 10.0.0.1`)).toBe("198.51.100.7");
      expect(clientOf({ trustedHops: 2 }, "10.9.9.9", `${long}, 198.51.100.7, 10.0.0.1`)).toBe("198.51.100.7");
    }
    for (const entry of ["x".repeat(100_000), " ".repeat(100_000), `${" ".repeat(100_000)}6.6.6.6`, `6.6.6.6${" ".repeat(100_000)}`]) {
      for (const option of [trusted, { trustedHops: 1 }]) expect(clientOf(option, "10.9.9.9", entry)).toBe("10.9.9.9");
      expect(clientOf({ header: "x-real-ip", ...trusted }, "10.9.9.9", entry, "x-real-ip")).toBe("10.9.9.9");
      expect(clientOf(trusted, "10.9.9.9", `${entry}, 10.0.0.1`)).toBe("10.0.0.1");
    }
  });
});

describe("header", () => {
  const cdn = { header: "CF-Connecting-IP", trustedProxies: ["192.0.2.0/24", "2001:db8:cf::/48"] };
  const cases: Case[] = [
    ["from the CDN", "192.0.2.10", "198.51.100.7", "198.51.100.7"],
    ["from the CDN over IPv6", "2001:db8:cf::1", "2001:DB8:2:0::1", "2001:db8:2::1"],
    ["from the CDN, mapped", "::ffff:192.0.2.10", " 198.51.100.7 ", "198.51.100.7"],
    ["past the CDN", "198.51.100.7", "6.6.6.6", "198.51.100.7"],
    ["past the CDN, no header", "198.51.100.7", undefined, "198.51.100.7"],
    ["without a header", "192.0.2.10", undefined, "192.0.2.10"],
    ["garbage", "192.0.2.10", "unknown", "192.0.2.10"],
    ["an empty header", "192.0.2.10", "", "192.0.2.10"],
    ["set twice", "192.0.2.10", "6.6.6.6, 198.51.100.7", "192.0.2.10"],
    ["a Unix socket", undefined, "6.6.6.6", undefined],
  ];
  it.each(cases)("%s", (_, peer, value, client) => {
    expect(clientOf(cdn, peer, value, "cf-connecting-ip")).toBe(client);
  });

  it("ignores all other headers", () => {
    expect(clientOf(cdn, "192.0.2.10", "6.6.6.6")).toBe("192.0.2.10");
  });
});

describe("a function", () => {
  it("returns the address or a promise of it", async () => {
    expect(clientOf((request) => request.headers?.["x-real-ip"], "10.0.0.1", "198.51.100.7", "x-real-ip")).toBe("198.51.100.7");
    expect(await clientOf(async () => "198.51.100.7", "10.0.0.1")).toBe("198.51.100.7");
    expect(clientOf(() => undefined, "10.0.0.1")).toBeUndefined();
  });
});

describe("clientIp", () => {
  const mistakes: [unknown, string, RegExp][] = [
    [
      true,
      "FLOODGATE_INVALID_OPTION",
      /rateLimit: `clientIp` must be an object or a function .* was true\. Write clientIp: \{ trustedHops: 1 \}/,
    ],
    [1, "FLOODGATE_INVALID_OPTION", /was 1\./],
    ["loopback", "FLOODGATE_INVALID_OPTION", /was "loopback"/],
    [null, "FLOODGATE_INVALID_OPTION", /was null/],
    [["10.0.0.0/8"], "FLOODGATE_INVALID_OPTION", /was an array of 1/],
    [{}, "FLOODGATE_INVALID_OPTION", /says nothing of your proxies/],
    [{ trustedHop: 1 }, "FLOODGATE_UNKNOWN_OPTION", /Did you mean `trustedHops`/],
    [
      { trustedHops: -1 },
      "FLOODGATE_INVALID_OPTION",
      /`trustedHops` must be a whole number of at least 0, but was -1\. Write trustedHops: 1/,
    ],
    [{ trustedHops: 1.5 }, "FLOODGATE_INVALID_OPTION", /was 1\.5/],
    [{ trustedHops: Number.NaN }, "FLOODGATE_INVALID_OPTION", /was NaN/],
    [{ trustedHops: "1" }, "FLOODGATE_INVALID_OPTION", /was "1"/],
    [{ trustedHops: 65 }, "FLOODGATE_INVALID_OPTION", /at most 64, but was 65/],
    [{ trustedHops: 1, trustedProxies: ["loopback"] }, "FLOODGATE_INVALID_OPTION", /both `trustedHops` and `trustedProxies`/],
    [{ trustedHops: 1, header: "x-real-ip" }, "FLOODGATE_INVALID_OPTION", /both `trustedHops` and `header`/],
    [{ header: "x-real-ip" }, "FLOODGATE_INVALID_OPTION", /anyone who reaches this server .* header: "x-real-ip", trustedProxies:/],
    [{ header: "x real ip", trustedProxies: ["loopback"] }, "FLOODGATE_INVALID_OPTION", /name of a header, but was "x real ip"/],
    [{ header: "", trustedProxies: ["loopback"] }, "FLOODGATE_INVALID_OPTION", /was ""/],
    [{ header: 1, trustedProxies: ["loopback"] }, "FLOODGATE_INVALID_OPTION", /was 1\./],
    [{ header: "X-Forwarded-For", trustedProxies: ["loopback"] }, "FLOODGATE_INVALID_OPTION", /a list\. Write/],
    [{ header: "Forwarded", trustedProxies: ["loopback"] }, "FLOODGATE_INVALID_OPTION", /with a parser/],
    [{ trustedProxies: "loopback" }, "FLOODGATE_INVALID_OPTION", /must be an array .* was "loopback"\. Write trustedProxies: \["10/],
    [{ trustedProxies: [] }, "FLOODGATE_INVALID_OPTION", /was an empty array\. .* leave `clientIp` out/],
    [{ trustedProxies: [""] }, "FLOODGATE_INVALID_OPTION", /trustedProxies\[0\]` must be .* was ""/],
    [{ trustedProxies: ["loopback", "localnet"] }, "FLOODGATE_INVALID_OPTION", /trustedProxies\[1\]` .* was "localnet"/],
    [{ trustedProxies: ["uniqelocal"] }, "FLOODGATE_INVALID_OPTION", /Did you mean "uniquelocal"\?/],
    [{ trustedProxies: ["constructor"] }, "FLOODGATE_INVALID_OPTION", /was "constructor"/],
    [{ trustedProxies: ["10.0.0.0/33"] }, "FLOODGATE_INVALID_OPTION", /was "10\.0\.0\.0\/33"/],
    [{ trustedProxies: [10] }, "FLOODGATE_INVALID_OPTION", /was 10\./],
    [{ trustedProxies: ["0.0.0.0/0"] }, "FLOODGATE_FORGEABLE_CLIENT_IP", /"0\.0\.0\.0\/0", which trusts everyone/],
    [{ trustedProxies: ["loopback", "::/0"] }, "FLOODGATE_FORGEABLE_CLIENT_IP", /trustedProxies\[1\]` is "::\/0"/],
    [{ trustedProxies: ["::/8"] }, "FLOODGATE_FORGEABLE_CLIENT_IP", /trusts everyone/],
    [{ trustedProxies: ["::ffff:0:0/96"] }, "FLOODGATE_FORGEABLE_CLIENT_IP", /trusts everyone/],
    [{ trustedProxies: ["2000::/3"] }, "FLOODGATE_FORGEABLE_CLIENT_IP", /trusts everyone/],
    [{ trustedProxies: ["2000::/4"] }, "FLOODGATE_FORGEABLE_CLIENT_IP", /trustedProxies\[0\]` is "2000::\/4", which trusts everyone/],
    [{ trustedProxies: ["0.0.0.0/1", "128.0.0.0/1"] }, "FLOODGATE_FORGEABLE_CLIENT_IP", /ranges that together trust everyone/],
    [{ trustedProxies: ["3000::/4", "2800::/5", "loopback", "2000::/5"] }, "FLOODGATE_FORGEABLE_CLIENT_IP", /together trust everyone/],
    [{ trustedProxies: ["0.0.0.0/2", "64.0.0.0/2", "128.0.0.0/2", "192.0.0.0/3"] }, "FLOODGATE_FORGEABLE_CLIENT_IP", /together trust/],
    [{ header: "x-real-ip", trustedProxies: ["128.0.0.0/1", "0.0.0.0/1"] }, "FLOODGATE_FORGEABLE_CLIENT_IP", /together trust everyone/],
    [{ header: "x-real-ip", trustedProxies: ["0.0.0.0/0"] }, "FLOODGATE_FORGEABLE_CLIENT_IP", /trusts everyone/],
  ];
  it.each(mistakes)("rejects %j when the option is read", (option, code, message) => {
    const make = () => resolver(option as ClientIpOption<Request>);
    expect(make).toThrow(FloodgateError);
    expect(make).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
  });
});
