import assert from "node:assert/strict";
import { fixedWindow, type Limiter } from "@floodgate/core";
import { encodeKey } from "@floodgate/core/store";
import type { LimitSetup } from "./adapter.js";
import type { AdapterSuite, App, Headers } from "./web.js";
import { self } from "./world.js";

const policy = fixedWindow({ limit: 1000, window: "1m" });
const forwarded = "x-forwarded-for";

/** Headers with a single address, as CDNs and proxies send them. */
export const single: readonly string[] = [
  "x-real-ip",
  "x-client-ip",
  "cf-connecting-ip",
  "true-client-ip",
  "fly-client-ip",
  "x-azure-clientip",
  "x-cluster-client-ip",
];

/** All headers that a client may forge, each with a different address. */
export const forged: Record<string, string> = Object.fromEntries(
  [forwarded, "forwarded", "x-forwarded", ...single].map((name, i) => [
    name,
    `${/^(x-)?forwarded$/.test(name) ? "for=" : ""}198.51.100.${i}`,
  ]),
);

/** A header value, the client it means as a list (X-Forwarded-For), and the client it means as a single address. */
export const spellings: [string | string[], string, string][] = [
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

/** Every client that one of these headers could mean. */
export const candidates: readonly string[] = [
  ...[self, "0.0.0.0", "::1", "::/56", "2001:db8::/56", ...Array.from({ length: 12 }, (_, i) => `198.51.100.${i}`)],
  ...spellings.map(([text]) => String(text)),
];

/** The candidates whose count a request changed. Reads the store directly, because a limiter accepts any notation. */
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

/** `clientIp` settings, and the header that each trusts from the peer, which is on loopback. */
const settings: [string, LimitSetup["clientIp"], string | undefined][] = [
  ["no setting", undefined, undefined],
  ["trustedHops: 1", { trustedHops: 1 }, forwarded],
  ["x-real-ip of the peer", { header: "x-real-ip", trustedProxies: ["127.0.0.0/8"] }, "x-real-ip"],
];

/** A client cannot change its identity by headers; only a trusted proxy can set it. */
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

      if (!adapter.proxies.includes("one hop")) continue;
      it(`the framework's proxy setting, ${peer}: only ${forwarded} is trusted`, async (web) => {
        const app = await web.start({ limits: [limit(undefined)], proxy: "one hop", host });
        for (const [name, value] of Object.entries(forged)) {
          assert.deepEqual(await countedFor(app, { [name]: value }), [name === forwarded ? value : self], name);
        }
      });

      it(`the framework's proxy setting, ${peer}: any notation is one client, and garbage is ignored or an error`, async (web) => {
        const app = await web.start({ limits: [limit(undefined)], proxy: "one hop", host });
        for (const [value, listed] of spellings) {
          const errors = app.errors.length;
          const counted = await countedFor(app, { [forwarded]: value }).catch(() => "an error");
          if (listed === self && counted === "an error") assert.deepEqual(app.codes.slice(errors), ["FLOODGATE_NO_CLIENT_IP"], `${value}`);
          else assert.deepEqual(counted, [listed], `${value}`);
        }
      });
    }
  });
}
