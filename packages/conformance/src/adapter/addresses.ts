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
  const { status } = await app.get("/", headers);
  assert.equal(status, 200);
  const counted: string[] = [];
  for (const candidate of new Set(candidates)) {
    if ((await store.peek(limit, encodeKey(candidate))).remaining !== 1000) counted.push(candidate);
  }
  return counted;
}

const xff = { [forwarded]: "198.51.100.1, 198.51.100.2" };
const peers = ["127.0.0.1", "::ffff:127.0.0.1"];

/** How the client's address is found. A client cannot change it by headers; only a trusted proxy can set it. */
export function addressCases({ adapter, it }: AdapterSuite): void {
  const limit = (clientIp?: LimitSetup["clientIp"]): LimitSetup => ({
    policy,
    onEvent: () => undefined,
    ...(clientIp === undefined ? {} : { clientIp }),
  });

  /** Every header that may be forged, alone and all together: only `trusted` sets the address. */
  const obeys = async (app: App, trusted?: string): Promise<void> => {
    for (const [name, value] of Object.entries(forged)) {
      assert.deepEqual(await countedFor(app, { [name]: value }), [name === trusted ? value : self], name);
    }
    assert.deepEqual(await countedFor(app, forged), [trusted === undefined ? self : forged[trusted]]);
    assert.deepEqual(await countedFor(app, {}), [self]);
  };

  for (const host of peers) {
    it(`without a setting, no header changes the address of a peer on ${host}`, async (web) => {
      await obeys(await web.start({ limits: [limit()], host }));
    });

    it(`with clientIp: { trustedHops: 1 }, X-Forwarded-For alone sets the address of a client behind ${host}`, async (web) => {
      await obeys(await web.start({ limits: [limit({ trustedHops: 1 })], host }), forwarded);
    });
  }

  it("a request of a library for AWS Lambda counts for the client that it passes as the peer, without a warning", async (web) => {
    const { onEvent, heard } = web.listen("allowed");
    const app = await web.start({ ...limit(), onEvent });
    app.handle({ [forwarded]: self });
    await heard;
    assert.deepEqual(
      web.events.map((event) => (event.type === "allowed" ? event.key : event.type)),
      [self],
    );
  });

  it("several lines of a header are read as one", async (web) => {
    const app = await web.start({ policy, clientIp: { trustedHops: 2 } });
    assert.deepEqual(await countedFor(app, { [forwarded]: ["198.51.100.1", "198.51.100.2"] }), ["198.51.100.1"]);
  });

  if (adapter.proxies.includes("one hop")) {
    for (const host of peers) {
      it(`with the framework's setting for one proxy, X-Forwarded-For alone sets the address of a client behind ${host}`, async (web) => {
        await obeys(await web.start({ limits: [limit()], proxy: "one hop", host }), forwarded);
      });
    }

    it("with the framework's setting for one proxy, the address is the proxy's entry, in any notation; garbage is an error", async (web) => {
      const app = await web.start({ limits: [limit()], proxy: "one hop" });
      assert.deepEqual(await countedFor(app, xff), ["198.51.100.2"]);
      for (const [value, listed] of spellings) {
        if (listed !== self || value === "") assert.deepEqual(await countedFor(app, { [forwarded]: value }), [listed], `${value}`);
        else {
          const errors = app.errors.length;
          assert.equal((await app.get("/", { [forwarded]: value })).status, 500, `${value}`);
          assert.deepEqual(app.codes.slice(errors), ["FLOODGATE_NO_CLIENT_IP"], `${value}`);
        }
      }
    });

    it("a forwarded address causes a warning, unless the framework's setting trusts a proxy", async (web) => {
      for (const [name, proxy, codes] of [
        ["trusted", "one hop", []],
        ["unknown", undefined, ["FLOODGATE_MISSING_PROXY_SETTING"]],
      ] as const) {
        const { onEvent } = web.listen("warning");
        const app = await web.start({ limits: [{ name, policy, onEvent }], ...(proxy && { proxy }) });
        await app.statuses(3, "/", { [forwarded]: "198.51.100.1", forwarded: "for=198.51.100.1" });
        assert.deepEqual(
          web.events.flatMap((event) => (event.type === "warning" ? [event.code] : [])),
          codes,
        );
      }
    });
  }

  if (!adapter.proxies.includes("forgeable")) return;
  it("a framework's setting that takes an address that anyone can forge is an error, with or without a proxy", async (web) => {
    const app = await web.start({ limits: [limit()], proxy: "forgeable" });
    assert.deepEqual([(await app.get("/", xff)).status, (await app.get("/")).status], [500, 500]);
    assert.deepEqual(app.codes, ["FLOODGATE_FORGEABLE_CLIENT_IP", "FLOODGATE_FORGEABLE_CLIENT_IP"]);
  });

  it("such a setting is checked for limits that may fall back to the address, and for no others", async (web) => {
    const falling = await web.start({ limits: [{ ...limit(), key: "header:x-user" }], proxy: "forgeable" });
    assert.equal((await falling.get("/", { "x-user": "ann" })).status, 500);
    assert.deepEqual(falling.codes, ["FLOODGATE_FORGEABLE_CLIENT_IP"]);
    const limits = [limit({ trustedHops: 1 }), { name: "all", policy, key: "global" as const }];
    const own = await web.start({ limits, proxy: "forgeable" });
    assert.deepEqual(await countedFor(own, xff), ["198.51.100.2"]);
  });

  it("such a setting fails no request of a shadow rule", async (web) => {
    const app = await web.start({ limits: [{ ...limit(), mode: "shadow" }], proxy: "forgeable" });
    assert.deepEqual([await app.statuses(3), app.codes], [[200, 200, 200], []]);
  });
}
