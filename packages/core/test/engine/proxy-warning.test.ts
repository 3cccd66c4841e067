import assert from "node:assert/strict";
import { type FloodgateEvent, fixedWindow } from "../../src/index.js";
import { type App, describe, type Headers, it, type LimitSetup } from "./app.js";

const policy = fixedWindow({ limit: 100, window: "1m" });

/** The headers that proxies add. */
const signs: [string, Headers][] = [
  ["X-Forwarded-For", { "x-forwarded-for": "198.51.100.1" }],
  ["Forwarded", { forwarded: "for=198.51.100.1" }],
];

/** Limits that work without a proxy setting. */
const unaffected: [string, LimitSetup][] = [
  ["with trustedHops: 0, which says that there is no proxy", { clientIp: { trustedHops: 0 } }],
  ["with trustedHops", { clientIp: { trustedHops: 1 } }],
  ["with trustedProxies", { clientIp: { trustedProxies: ["192.0.2.0/24"] } }],
  ["with a function for clientIp", { clientIp: () => "192.0.2.1" }],
  ["by a header", { key: "header:x-user", onMissingKey: "skip" }],
  ["all requests together", { key: "global" }],
  ["by a key function that does not read the address", { key: () => "ann", onMissingKey: "skip" }],
];

/** Warns of a proxy that the framework is not configured for. */
const warnings = (events: readonly FloodgateEvent[]): string[] =>
  events.flatMap((event) => (event.type === "warning" ? [`${event.code}: ${event.message}`] : []));
const send = async (app: App, headers: Headers): Promise<void> => {
  for (let i = 0; i < 3; i++) assert.equal((await app.raw("/", headers)).status, 200);
};

describe("a forwarded address without a trusted proxy", () => {
  for (const [sign, headers] of signs) {
    it(`warns once per middleware: ${sign}`, async (web) => {
      const { onEvent } = web.listen("warning");
      const limits = ["a", "b"].map((name) => ({ name, policy, onEvent }));
      const app = await web.start({ limits });
      await send(app, {});
      assert.deepEqual(warnings(web.events), []);
      await send(app, headers);
      assert.equal(warnings(web.events).length, 2);
      assert.match(warnings(web.events)[0] ?? "", /^FLOODGATE_MISSING_PROXY_SETTING: .*clientIp: \{ trustedHops: 1 \}/);
    });

    it(`warns without repeating the content of ${sign}`, async (web) => {
      const { onEvent } = web.listen("warning");
      for (const text of ["198.51.100.1", "<script>alert(1)</script>", "%s\\n%o", "", "a".repeat(5000)]) {
        const app = await web.start({ name: `of ${text.length}`, policy, onEvent });
        await send(app, Object.fromEntries(Object.keys(headers).map((name) => [name, text])));
      }
      assert.deepEqual([warnings(web.events).length, new Set(warnings(web.events)).size], [5, 1]);
    });

    for (const [how, limit] of unaffected) {
      it(`causes no warning for a limit that counts ${how}: ${sign}`, async (web) => {
        const { onEvent } = web.listen("warning");
        const app = await web.start({ policy, ...limit, onEvent });
        await send(app, headers);
        assert.deepEqual(warnings(web.events), []);
      });
    }
  }

  it("warns for key functions that read the address, and for keys that fall back to it", async (web) => {
    const { onEvent } = web.listen("warning");
    const limits: LimitSetup[] = [
      { name: "asks", policy, onEvent, key: (_, { ip }) => [ip, "login"] },
      { name: "falls back", policy, onEvent, key: "header:x-user" },
    ];
    const app = await web.start({ limits });
    await send(app, { "x-forwarded-for": "198.51.100.1", "x-user": "ann" });
    assert.equal(warnings(web.events).length, 2);
  });
});
