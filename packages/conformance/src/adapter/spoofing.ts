import assert from "node:assert/strict";
import { fixedWindow, type Limiter } from "@floodgate/core";
import { encodeKey } from "@floodgate/core/store";
import fc from "fast-check";
import type { LimitSetup } from "./adapter.js";
import { type AdapterSuite, type App, type Headers, self } from "./web.js";

const policy = fixedWindow({ limit: 1000, window: "1m" });
const forwarded = "x-forwarded-for";

/** Headers that hold one address, of CDNs and others. */
const single = [
  "x-real-ip",
  "x-client-ip",
  "cf-connecting-ip",
  "true-client-ip",
  "fly-client-ip",
  "x-azure-clientip",
  "x-cluster-client-ip",
];

/** Headers that a client may write to be taken for somebody else, each with an address of its own. */
const forged: Record<string, string> = Object.fromEntries(
  [forwarded, "forwarded", "x-forwarded", ...single].map((name, i) => [
    name,
    `${/^(x-)?forwarded$/.test(name) ? "for=" : ""}198.51.100.${i}`,
  ]),
);

/** How a proxy, or someone who plays one, writes an address; who it is as the only or last entry of a list, and as a lone value. */
const spellings: [string | string[], string, string][] = [
  ["198.51.100.2", "198.51.100.2", "198.51.100.2"],
  [" 198.51.100.2\t", "198.51.100.2", "198.51.100.2"],
  ["198.51.100.2:5544", "198.51.100.2", "198.51.100.2"],
  ["::ffff:198.51.100.2", "198.51.100.2", "198.51.100.2"],
  ["::FFFF:c633:6402", "198.51.100.2", "198.51.100.2"],
  ["2001:DB8::7", "2001:db8::/56", "2001:db8::/56"],
  ["[2001:db8::7]:443", "2001:db8::/56", "2001:db8::/56"],
  ["2001:db8::7%eth0", "2001:db8::/56", "2001:db8::/56"],
  ["198.51.100.1,198.51.100.2", "198.51.100.2", self],
  ["unknown, <b>, , 198.51.100.2", "198.51.100.2", self],
  [["198.51.100.1", "198.51.100.2"], "198.51.100.2", self],
  ["198.51.100.2, unknown", self, self],
  ["unknown", self, self],
  ["_hidden", self, self],
  ["", self, self],
  ["0306.063.0144.02", self, self],
  ["198.51.100", self, self],
  ["198.51.100.2x", self, self],
  ["198.51.100.2:http", self, self],
  ["2001:db8::g", self, self],
  ["for=198.51.100.2", self, self],
];

/** Everybody whom a header of these cases could be taken for. */
const candidates = [
  ...[self, "0.0.0.0", "::1", "::/56", "2001:db8::/56", ...Array.from({ length: 12 }, (_, i) => `198.51.100.${i}`)],
  ...spellings.map(([text]) => String(text)),
];

/** Who is counted for a request, of the candidates: as the store knows them, for a limiter takes an address in any notation. */
export async function countedFor(app: App, headers: Headers): Promise<string[]> {
  const { store, limit } = (app.limits[0] as { limiter: Limiter }).limiter;
  for (const candidate of candidates) await store.reset(limit, encodeKey(candidate));
  const { status } = await app.raw("/", headers);
  assert.equal(status, 200);
  const counted: string[] = [];
  for (const candidate of new Set(candidates)) {
    if ((await store.peek(limit, encodeKey(candidate))).remaining !== 1000) counted.push(candidate);
  }
  return counted;
}

const strangers = ["192.0.2.0/24", "2001:db8:1::/48"];

/** Settings, and the one header that each believes of the peer, which is on loopback. */
const settings: [string, LimitSetup["clientIp"], string | undefined][] = [
  ["no setting", undefined, undefined],
  ["trustedHops: 0", { trustedHops: 0 }, undefined],
  ["trustedHops: 1", { trustedHops: 1 }, forwarded],
  ["trustedProxies: the peer", { trustedProxies: ["loopback"] }, forwarded],
  ["trustedProxies: strangers", { trustedProxies: strangers }, undefined],
  ...single.flatMap((header): typeof settings => [
    [`${header} of the peer`, { header, trustedProxies: ["127.0.0.0/8"] }, header],
    [`${header} of strangers`, { header, trustedProxies: strangers }, undefined],
  ]),
];

/** No choice of headers makes a client someone else, unless a proxy that is trusted sent it. */
export function spoofingCases({ adapter, describe, it }: AdapterSuite): void {
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
      for (const [setting, clientIp, believed] of settings) {
        it(`${setting}, ${peer}: ${believed ?? "no header"} is believed`, async (web) => {
          const app = await web.start({ limits: [limit(clientIp)], host });
          for (const [name, value] of Object.entries(forged)) {
            assert.deepEqual(await countedFor(app, { [name]: value }), [name === believed ? value : self], name);
          }
          assert.deepEqual(await countedFor(app, forged), [believed === undefined ? self : forged[believed]]);
          assert.deepEqual(await countedFor(app, {}), [self]);
        });

        if (believed === undefined) continue;
        it(`${setting}, ${peer}: ${believed} in any notation is one client, and garbage is nobody`, async (web) => {
          const app = await web.start({ limits: [limit(clientIp)], host });
          for (const [value, listed, alone] of spellings) {
            assert.deepEqual(await countedFor(app, { [believed]: value }), [believed === forwarded ? listed : alone], `${value}`);
          }
        });
      }

      if (!adapter.proxies.includes("one hop")) continue;
      it(`the framework's own setting, ${peer}: only ${forwarded} is believed`, async (web) => {
        const app = await web.start({ limits: [limit(undefined)], proxy: "one hop", host });
        for (const [name, value] of Object.entries(forged)) {
          assert.deepEqual(await countedFor(app, { [name]: value }), [name === forwarded ? value : self], name);
        }
      });

      it(`the framework's own setting, ${peer}: any notation is one client, and garbage is nobody or an error`, async (web) => {
        const app = await web.start({ limits: [limit(undefined)], proxy: "one hop", host });
        for (const [value, listed] of spellings) {
          const errors = app.errors.length;
          const counted = await countedFor(app, { [forwarded]: value }).catch(() => "an error");
          if (listed === self && counted === "an error") assert.deepEqual(app.codes.slice(errors), ["FLOODGATE_NO_CLIENT_IP"], `${value}`);
          else assert.deepEqual(counted, [listed], `${value}`);
        }
      });
    }

    it("no text in any header of a client's moves it", async (web) => {
      const anyText = fc.array(fc.constantFrom("203.0.113.9", "127.0.0.2", "::1", "2001:db8::1", "for=", ",", " ", ":80", "[", "]", "x"), {
        maxLength: 8,
      });
      const anyHeaders = fc.dictionary(
        fc.constantFrom(...Object.keys(forged)),
        anyText.map((parts) => parts.join("")),
        { maxKeys: 4 },
      );
      const distrusting = settings.flatMap(([, clientIp, believed]) => (believed === undefined ? [limit(clientIp)] : []));
      const apps = await Promise.all(distrusting.map((one, i) => web.start({ ...one, name: `limit ${i}` })));
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...apps), anyHeaders, async (app, headers) => {
          assert.deepEqual(await countedFor(app, headers), [self]);
        }),
      );
    });
  });
}
