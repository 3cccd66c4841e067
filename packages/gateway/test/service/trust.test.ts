import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { runs } from "../../../../test/runs.js";
import { peerCheck } from "../../src/envoy/server.js";
import { type Peer, Trust } from "../../src/service/trust.js";

const proxies = ["loopback", "10.0.0.0/8", "2001:db8::/32"];

/** The client that a peer says; a peer of `"unix"` has no address. */
function clientOf(header: string, value: string | undefined, peer = "10.0.0.1", trustedPeers = proxies): string | undefined {
  const trust = new Trust({ trustedPeers, clientIpHeader: header });
  const from = trust.peer(peer === "unix" ? undefined : peer, peer === "unix") as Peer;
  return trust.clientIp(from, (name) => (name === header.toLowerCase() ? value : "6.6.6.6"));
}

describe("the client of X-Forwarded-For, counted from the right", () => {
  it.each<[string, string | undefined, string]>([
    ["one address", "203.0.113.7", "203.0.113.7"],
    ["forged addresses before it", "1.1.1.1, 2.2.2.2, 203.0.113.7", "203.0.113.7"],
    ["trusted proxies behind it", "1.1.1.1, 203.0.113.7, 10.9.9.9, 127.0.0.1", "203.0.113.7"],
    ["only trusted proxies", "10.1.1.1, 10.2.2.2", "10.1.1.1"],
    ["a port", "203.0.113.7:4711", "203.0.113.7"],
    ["IPv6 in brackets, with a port", "[2a00::7]:443", "2a00::7"],
    ["an IPv4-mapped proxy", "203.0.113.7, ::ffff:10.1.1.1", "203.0.113.7"],
    ["garbage at the right: nobody is believed", "203.0.113.7, garbage", "10.0.0.1"],
    ["garbage in the middle: the last good one counts", "203.0.113.7, garbage, 10.2.2.2", "10.2.2.2"],
    ["an empty value", "", "10.0.0.1"],
    ["commas only", ",,,,", "10.0.0.1"],
    ["a folded line", "1.1.1.1,\r\n\t203.0.113.7", "203.0.113.7"],
    ["no header", undefined, "10.0.0.1"],
    ["thousands of addresses", `${"1.1.1.1, ".repeat(20_000)}203.0.113.7`, "203.0.113.7"],
    ["thousands of trusted addresses: at most 64 are skipped", `203.0.113.7${", 10.1.1.1".repeat(20_000)}`, "10.1.1.1"],
    ["one huge entry", "1".repeat(1_000_000), "10.0.0.1"],
  ])("%s", (_, value, client) => {
    expect(clientOf("x-forwarded-for", value)).toBe(client);
  });
});

describe("the client of Forwarded", () => {
  it.each<[string, string]>([
    ["for=203.0.113.7", "203.0.113.7"],
    ["For=203.0.113.7;proto=https;by=10.0.0.1, for=10.2.2.2", "203.0.113.7"],
    ['for="[2a00::7]:4711";host="a,b;c"', "2a00::7"],
    ['for=1.1.1.1, for="203.0.113.7"', "203.0.113.7"],
    ["for=203.0.113.7, for=unknown", "10.0.0.1"],
    ["for=203.0.113.7, for=_hidden", "10.0.0.1"],
    ["for=203.0.113.7, proto=https", "10.0.0.1"],
    ["for=1.1.1.1;for=203.0.113.7", "10.0.0.1"],
    ['for="203.0.113.7', "10.0.0.1"],
    ['host="\\", for=1.1.1.1, \\"";for=203.0.113.7', "203.0.113.7"],
  ])("%s", (value, client) => {
    expect(clientOf("forwarded", value)).toBe(client);
  });

  it("takes no forged address from a quote that somebody opened before", () => {
    expect(clientOf("Forwarded", 'for=";for=1.1.1.1, for=203.0.113.7')).toBe("10.0.0.1");
  });
});

test("whatever a client sends as Forwarded and Host, it counts as itself, or as the proxy that has appended an element", () => {
  const piece = fc.constantFrom('"', "\\", ",", ";", "=", "for=6.6.6.6", 'for="6.6.6.6"', "x=", "x=y", "h", " ", "for=");
  const text = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(""));
  const quoted = (host: string) => `host="${host.replace(/["\\]/g, "\\$&")}"`;
  const order = fc.shuffledSubarray(["for=203.0.113.7", "proto=https", "host"], { minLength: 3 });
  fc.assert(
    fc.property(text, text, order, (sent, host, pairs) => {
      const element = pairs.map((pair) => (pair === "host" ? quoted(host) : pair)).join(";");
      expect(["203.0.113.7", "10.0.0.1"]).toContain(clientOf("forwarded", `${sent}, ${element}`));
      expect(clientOf("forwarded", element)).toBe("203.0.113.7");
    }),
    { ...runs(2000), examples: [['for="', "h;for=6.6.6.6;x", ["for=203.0.113.7", "host", "proto=https"]]] },
  );
});

test("a header with one address counts if it holds exactly one", () => {
  expect(clientOf("X-Real-IP", "203.0.113.7")).toBe("203.0.113.7");
  expect(clientOf("x-real-ip", "203.0.113.7, 1.1.1.1")).toBe("10.0.0.1");
});

test("no header of an untrusted peer counts", () => {
  fc.assert(
    fc.property(
      fc.constantFrom("x-forwarded-for", "forwarded", "x-real-ip"),
      fc.oneof(fc.string(), fc.ipV4(), fc.ipV6()),
      (header, value) => {
        expect(clientOf(header, value, "198.51.100.1")).toBe("198.51.100.1");
        expect(clientOf(header, value, "unix")).toBe(undefined);
      },
    ),
  );
});

test("a client that has reset its TCP connection, and so has no address, is never the trusted peer of a Unix socket", () => {
  const trust = new Trust({ trustedPeers: ["loopback", "unix"], clientIpHeader: "x" });
  expect(trust.peer(undefined, false)).toBe(undefined);
  expect(peerCheck(trust, false, false)("unknown")).toBe(false);
  expect(peerCheck(trust, true, false)("unknown")).toBe(true);
});

test("a peer on a Unix socket is trusted only if `trustedPeers` says unix", () => {
  const trusts = (trustedPeers: string[]) => new Trust({ trustedPeers, clientIpHeader: "x" }).peer(undefined, true)?.isTrusted;
  expect([trusts(["loopback"]), trusts([]), trusts(["unix"])]).toEqual([false, false, true]);
  expect(clientOf("x-forwarded-for", "1.1.1.1, 203.0.113.7", "unix", ["unix"])).toBe("203.0.113.7");
});
