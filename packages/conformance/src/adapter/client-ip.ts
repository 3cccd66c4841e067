import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { LimitSetup } from "./adapter.js";
import { countedFor } from "./spoofing.js";
import { type AdapterSuite, type Headers, self } from "./web.js";

const policy = fixedWindow({ limit: 1000, window: "1m" });

const xff = { "x-forwarded-for": "198.51.100.1, 198.51.100.2" };

/** The `clientIp` option, the headers from the proxy, and the expected client. */
const choices: [string, NonNullable<LimitSetup["clientIp"]>, Headers, string][] = [
  ["trustedHops: 1 takes the last address", { trustedHops: 1 }, xff, "198.51.100.2"],
  ["trustedHops: 2 takes the last but one", { trustedHops: 2 }, xff, "198.51.100.1"],
  ["trustedHops: 3 with fewer entries is the socket's address", { trustedHops: 3 }, xff, self],
  ["trustedHops without the header is the socket's address", { trustedHops: 1 }, {}, self],
  [
    "trustedHops stops at an invalid entry and takes the last valid one",
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
  ["trustedProxies takes the last address that is not one of them", { trustedProxies: ["loopback"] }, xff, "198.51.100.2"],
  ["trustedProxies walks past all of them", { trustedProxies: ["loopback", "198.51.100.2/32"] }, xff, "198.51.100.1"],
  [
    "trustedProxies matches an address in any notation",
    { trustedProxies: ["loopback", "198.51.100.2/32"] },
    { "x-forwarded-for": "198.51.100.1, [::ffff:c633:6402]:443" },
    "198.51.100.1",
  ],
  ["a function", (request) => request.header("x-real-ip"), { "x-real-ip": "198.51.100.1" }, "198.51.100.1"],
  ["an async function", async (request) => request.header("x-real-ip"), { "x-real-ip": "198.51.100.1" }, "198.51.100.1"],
];

/** How the client's address is found. */
export function clientIpCases({ adapter, describe, it }: AdapterSuite): void {
  describe("the client's address", () => {
    for (const [says, clientIp, headers, expected] of choices) {
      it(`with clientIp: ${says}`, async (web) => {
        const app = await web.start({ policy, clientIp });
        assert.deepEqual(await countedFor(app, headers), [expected]);
      });
    }

    if (adapter.proxies.includes("one hop")) {
      it("follows the framework's proxy setting: with one proxy, it is the address that the proxy appended", async (web) => {
        const app = await web.start({ limits: [{ policy }], proxy: "one hop" });
        assert.deepEqual(await countedFor(app, xff), ["198.51.100.2"]);
        assert.deepEqual(await countedFor(app, { "x-forwarded-for": "198.51.100.3" }), ["198.51.100.3"]);
        assert.deepEqual(await countedFor(app, {}), [self]);
      });
    }

    if (adapter.proxies.includes("forgeable")) {
      it("is an error if the framework's setting takes an address that anyone can forge, with or without a proxy", async (web) => {
        const app = await web.start({ limits: [{ policy }], proxy: "forgeable" });
        assert.equal((await app.get("/", xff)).status, 500);
        assert.equal((await app.get("/")).status, 500);
        assert.deepEqual(app.codes, ["FLOODGATE_FORGEABLE_CLIENT_IP", "FLOODGATE_FORGEABLE_CLIENT_IP"]);
      });

      it("is checked at the first request, also for a limit with another key that falls back to the address", async (web) => {
        const app = await web.start({ limits: [{ policy, key: "header:x-user" }], proxy: "forgeable" });
        assert.equal((await app.get("/", { "x-user": "ann" })).status, 500);
        assert.deepEqual(app.codes, ["FLOODGATE_FORGEABLE_CLIENT_IP"]);
      });

      it("is not checked for limits that never count by it, or with their own clientIp", async (web) => {
        const limits = [
          { policy, clientIp: { trustedHops: 1 } },
          { name: "all", policy, key: "global" as const },
        ];
        const app = await web.start({ limits, proxy: "forgeable" });
        assert.deepEqual(await countedFor(app, xff), ["198.51.100.2"]);
      });
    }

    for (const [kind, prefix, ips, statuses] of [
      [
        "counts IPv6 addresses of one /56 as one client",
        undefined,
        ["2001:db8:0:1::1", "2001:db8:0:ff:1:2:3:4", "2001:DB8:0000:0042::", "2001:db8:0:100::1"],
        [200, 429, 429, 200],
      ],
      ["ipv6Prefix: 64 tells its networks apart", 64, ["2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:2::1"], [200, 429, 200]],
      ["ipv6Prefix: 128 tells single addresses apart", 128, ["2001:db8::1", "2001:db8::2", "2001:db8::1"], [200, 200, 429]],
      [
        "counts IPv4 addresses in any notation as one client",
        undefined,
        ["192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201", "::FFFF:C000:0201", "192.0.2.2", "::ffff:192.0.2.3"],
        [200, 429, 429, 429, 200, 200],
      ],
      [
        "ignores zone ids and ports",
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

    for (const ip of [
      "",
      "unknown",
      "0177.0.0.1",
      "127.1",
      "2001:db8::g",
      "1.2.3.4, 5.6.7.8",
      "_hidden",
      null,
      2_130_706_433,
      ["127.0.0.1"],
    ]) {
      it(`is an error for the invalid address ${JSON.stringify(ip)}`, async (web) => {
        const app = await web.start({ policy, clientIp: () => ip as string });
        assert.equal((await app.get()).status, 500);
        assert.deepEqual(app.codes, ["FLOODGATE_NO_CLIENT_IP"]);
      });
    }
  });
}
