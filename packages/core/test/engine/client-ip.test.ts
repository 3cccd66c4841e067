import assert from "node:assert/strict";
import fc from "fast-check";
import { candidates, forged, single, spellings } from "../../../conformance/src/adapter/addresses.js";
import { fixedWindow, type Limiter } from "../../src/index.js";
import { encodeKey } from "../../src/store.js";
import { type App, describe, type Headers, it, type LimitSetup, self } from "./app.js";

const policy = fixedWindow({ limit: 1000, window: "1m" });
const forwarded = "x-forwarded-for";

/** The candidates whose count a request changed. Reads the store directly, because a limiter accepts any notation. */
export async function countedFor(app: App, headers: Headers): Promise<string[]> {
  const { store, limit } = (app.limits[0] as { limiter: Limiter }).limiter;
  for (const candidate of candidates) await store.reset(limit, encodeKey(candidate));
  const { status } = await app.get("/", headers);
  assert.equal(status, 200);
  const counted: string[] = [];
  for (const candidate of new Set(candidates)) {
    if ((await store.peek(limit, encodeKey(candidate))).remaining !== 1000) counted.push(candidate);
  }
  return counted;
}

const unrelated = ["192.0.2.0/24", "2001:db8:1::/48"];

/** `clientIp` settings, and the header that each trusts from the peer, which is on loopback. */
const settings: [string, LimitSetup["clientIp"], string | undefined][] = [
  ["no setting", undefined, undefined],
  ["trustedHops: 0", { trustedHops: 0 }, undefined],
  ["trustedHops: 1", { trustedHops: 1 }, forwarded],
  ["trustedProxies: the peer", { trustedProxies: ["loopback"] }, forwarded],
  ["trustedProxies: other addresses", { trustedProxies: unrelated }, undefined],
  ...single.flatMap((header): typeof settings => [
    [`${header} of the peer`, { header, trustedProxies: ["127.0.0.0/8"] }, header],
    [`${header} of other addresses`, { header, trustedProxies: unrelated }, undefined],
  ]),
];

/** A client cannot change its identity by headers; only a trusted proxy can set it. */
const limit = (clientIp: LimitSetup["clientIp"]): LimitSetup => ({
  policy,
  onEvent: () => undefined,
  ...(clientIp === undefined ? {} : { clientIp }),
});

describe("spoofing", () => {
  for (const [peer, host] of [
    ["an IPv4 peer", "127.0.0.1"],
    ["an IPv4-mapped peer", "::ffff:127.0.0.1"],
  ] as const) {
    for (const [setting, clientIp, trusted] of settings) {
      it(`${setting}, ${peer}: ${trusted ?? "no header"} is trusted`, async (web) => {
        const app = await web.start({ limits: [limit(clientIp)], host });
        for (const [name, value] of Object.entries(forged)) {
          assert.deepEqual(await countedFor(app, { [name]: value }), [name === trusted ? value : self], name);
        }
        assert.deepEqual(await countedFor(app, forged), [trusted === undefined ? self : forged[trusted]]);
        assert.deepEqual(await countedFor(app, {}), [self]);
      });

      if (trusted === undefined) continue;
      it(`${setting}, ${peer}: ${trusted} in any notation is one client, and garbage is ignored`, async (web) => {
        const app = await web.start({ limits: [limit(clientIp)], host });
        for (const [value, listed, alone] of spellings) {
          assert.deepEqual(await countedFor(app, { [trusted]: value }), [trusted === forwarded ? listed : alone], `${value}`);
        }
      });
    }
  }

  it("no header from a client changes its address", async (web) => {
    const anyText = fc.array(fc.constantFrom("203.0.113.9", "127.0.0.2", "::1", "2001:db8::1", "for=", ",", " ", ":80", "[", "]", "x"), {
      maxLength: 8,
    });
    const anyHeaders = fc.dictionary(
      fc.constantFrom(...Object.keys(forged)),
      anyText.map((parts) => parts.join("")),
      { maxKeys: 4 },
    );
    const distrusting = settings.flatMap(([, clientIp, trusted]) => (trusted === undefined ? [limit(clientIp)] : []));
    const apps = await Promise.all(distrusting.map((one, i) => web.start({ ...one, name: `limit ${i}` })));
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...apps), anyHeaders, async (app, headers) => {
        assert.deepEqual(await countedFor(app, headers), [self]);
      }),
    );
  });
});

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
describe("the client's address", () => {
  for (const [says, clientIp, headers, expected] of choices) {
    it(`with clientIp: ${says}`, async (web) => {
      const app = await web.start({ policy, clientIp });
      assert.deepEqual(await countedFor(app, headers), [expected]);
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
