import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { LimitSetup } from "./adapter.js";
import { type AdapterSuite, type App, type Headers, self } from "./web.js";

const policy = fixedWindow({ limit: 1000, window: "1m" });

/** Headers that a client may write to be taken for somebody else. */
const forged: Headers = {
  "x-forwarded-for": "198.51.100.1, 198.51.100.2",
  forwarded: "for=198.51.100.3",
  "x-real-ip": "198.51.100.4",
  "x-client-ip": "198.51.100.5",
  "cf-connecting-ip": "198.51.100.6",
  "true-client-ip": "198.51.100.7",
  "fly-client-ip": "198.51.100.8",
  "x-azure-clientip": "198.51.100.9",
  "x-cluster-client-ip": "198.51.100.10",
};

/** Who is counted for a request, where that is to be found among these. */
async function countedFor(app: App, headers: Headers, candidates: readonly string[]): Promise<string[]> {
  const limiter = app.limits[0]?.limiter;
  for (const candidate of candidates) await limiter?.reset(candidate);
  const { status } = await app.raw("/", headers);
  assert.equal(status, 200);
  const counted: string[] = [];
  for (const candidate of candidates) if ((await limiter?.peek(candidate))?.remaining !== 1000) counted.push(candidate);
  return counted;
}

const addresses = [self, ...Array.from({ length: 20 }, (_, i) => `198.51.100.${i}`), "203.0.113.9"];

/** A proxy's word, the client's word, and which of them is believed. */
const choices: [string, LimitSetup["clientIp"], Headers, string][] = [
  ["trustedHops: 0 believes no header", { trustedHops: 0 }, forged, self],
  ["trustedHops: 1 takes the last address", { trustedHops: 1 }, forged, "198.51.100.2"],
  ["trustedHops: 2 takes the last but one", { trustedHops: 2 }, forged, "198.51.100.1"],
  ["trustedHops: 3 with fewer entries is the socket's address", { trustedHops: 3 }, forged, self],
  ["trustedHops without the header is the socket's address", { trustedHops: 1 }, {}, self],
  [
    "trustedHops past an entry that is none is the last good one",
    { trustedHops: 2 },
    { "x-forwarded-for": "unknown, 198.51.100.2" },
    "198.51.100.2",
  ],
  [
    "trustedHops reads several header lines as one",
    { trustedHops: 2 },
    { "x-forwarded-for": ["198.51.100.1", "198.51.100.2"] },
    "198.51.100.1",
  ],
  ["trustedHops drops ports", { trustedHops: 1 }, { "x-forwarded-for": "198.51.100.2:5544" }, "198.51.100.2"],
  ["a proxy that is not trusted is not believed", { trustedProxies: ["192.0.2.0/24"] }, forged, self],
  ["a trusted proxy's last address", { trustedProxies: ["loopback"] }, forged, "198.51.100.2"],
  ["past all that are trusted", { trustedProxies: ["loopback", "198.51.100.2/32"] }, forged, "198.51.100.1"],
  ["a header that a trusted proxy sets", { header: "CF-Connecting-IP", trustedProxies: ["127.0.0.0/8"] }, forged, "198.51.100.6"],
  ["a header that anyone else sets", { header: "cf-connecting-ip", trustedProxies: ["192.0.2.0/24"] }, forged, self],
  [
    "a header with two addresses",
    { header: "x-real-ip", trustedProxies: ["loopback"] },
    { "x-real-ip": "198.51.100.1, 198.51.100.2" },
    self,
  ],
  ["a function", (request) => request.header("x-real-ip"), forged, "198.51.100.4"],
  ["an async function", async (request) => request.header("x-real-ip"), forged, "198.51.100.4"],
];

/** Who the client is. */
export function clientIpCases({ adapter, describe, it }: AdapterSuite): void {
  describe("the client's address", () => {
    it("is the socket's where nothing else is said, whatever headers claim", async (web) => {
      const app = await web.start({ policy });
      assert.deepEqual(await countedFor(app, forged, addresses), [self]);
    });

    it("changes with no header that a client may vary", async (web) => {
      const app = await web.start({ policy: fixedWindow({ limit: 1, window: "1m" }) });
      await app.get();
      for (let i = 0; i < 20; i++) {
        const headers = Object.fromEntries(
          Object.keys(forged).map((name) => [name, name === "forwarded" ? `for=203.0.113.${i}` : `203.0.113.${i}`]),
        );
        assert.equal((await app.get("/", headers)).status, 429);
      }
    });

    for (const [says, clientIp, headers, expected] of choices) {
      it(`clientIp: ${says}`, async (web) => {
        const app = await web.start({ policy, clientIp: clientIp as NonNullable<typeof clientIp> });
        assert.deepEqual(await countedFor(app, headers, addresses), [expected]);
      });
    }

    if (adapter.proxies.includes("one hop")) {
      it("follows the framework's own proxy setting: with one proxy, the address that it appended", async (web) => {
        const app = await web.start({ limits: [{ policy }], proxy: "one hop" });
        assert.deepEqual(await countedFor(app, forged, addresses), ["198.51.100.2"]);
        assert.deepEqual(await countedFor(app, { "x-forwarded-for": "203.0.113.9" }, addresses), ["203.0.113.9"]);
        assert.deepEqual(await countedFor(app, {}, addresses), [self]);
      });

      it("is an error where the proxy has sent something that is none", async (web) => {
        const app = await web.start({ limits: [{ policy }], proxy: "one hop" });
        assert.equal((await app.get("/", { "x-forwarded-for": "198.51.100.1, unknown" })).status, 500);
        assert.deepEqual(app.codes, ["FLOODGATE_NO_CLIENT_IP"]);
      });
    }

    if (adapter.proxies.includes("forgeable")) {
      it("is an error where the framework's setting would take what anyone can forge, also without a proxy in front", async (web) => {
        const app = await web.start({ limits: [{ policy }], proxy: "forgeable" });
        assert.equal((await app.get("/", forged)).status, 500);
        assert.equal((await app.get("/")).status, 500);
        assert.deepEqual(app.codes, ["FLOODGATE_FORGEABLE_CLIENT_IP", "FLOODGATE_FORGEABLE_CLIENT_IP"]);
      });

      it("does not matter to a limit that does not count by it, nor with a clientIp of its own", async (web) => {
        const limits = [
          { policy, clientIp: { trustedHops: 1 } },
          { name: "all", policy, key: "global" as const },
        ];
        const app = await web.start({ limits, proxy: "forgeable" });
        assert.deepEqual(await countedFor(app, forged, addresses), ["198.51.100.2"]);
      });
    }

    for (const [kind, prefix, ips, statuses] of [
      [
        "IPv6 of one /56 is one client",
        undefined,
        ["2001:db8:0:1::1", "2001:db8:0:ff:1:2:3:4", "2001:DB8:0000:0042::", "2001:db8:0:100::1"],
        [200, 429, 429, 200],
      ],
      ["ipv6Prefix: 64 tells its networks apart", 64, ["2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:2::1"], [200, 429, 200]],
      ["ipv6Prefix: 128 tells single addresses apart", 128, ["2001:db8::1", "2001:db8::2", "2001:db8::1"], [200, 200, 429]],
      [
        "IPv4 in any notation is that address",
        undefined,
        ["192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201", "::FFFF:C000:0201", "192.0.2.2", "::ffff:192.0.2.3"],
        [200, 429, 429, 429, 200, 200],
      ],
      [
        "a zone or a port is no other client",
        undefined,
        ["fe80::1%eth0", "fe80::1%eth1", "[fe80::1]:80", "192.0.2.1:80", "192.0.2.1:81"],
        [200, 429, 429, 200, 429],
      ],
    ] as [string, number | undefined, string[], number[]][]) {
      it(`${kind}`, async (web) => {
        const limit: LimitSetup = { policy: fixedWindow({ limit: 1, window: "1m" }), clientIp: (request) => request.header("x-ip") };
        const app = await web.start(prefix === undefined ? limit : { ...limit, ipv6Prefix: prefix });
        for (const [i, ip] of ips.entries()) assert.equal((await app.get("/", { "x-ip": ip })).status, statuses[i], ip);
      });
    }

    for (const ip of ["", "unknown", "0177.0.0.1", "127.1", "2001:db8::g", "1.2.3.4, 5.6.7.8", "_hidden"]) {
      it(`${JSON.stringify(ip)} is no address, and nobody is counted or let through for it`, async (web) => {
        const app = await web.start({ policy, clientIp: () => ip });
        assert.equal((await app.get()).status, 500);
        assert.deepEqual(app.codes, ["FLOODGATE_NO_CLIENT_IP"]);
      });
    }
  });
}
