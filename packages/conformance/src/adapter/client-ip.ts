import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { LimitSetup } from "./adapter.js";
import { countedFor } from "./spoofing.js";
import type { AdapterSuite, Headers } from "./web.js";
import { self } from "./world.js";

const policy = fixedWindow({ limit: 1000, window: "1m" });

const xff = { "x-forwarded-for": "198.51.100.1, 198.51.100.2" };

/** The `clientIp` option, the headers from the proxy, and the expected client. */
const choices: [string, NonNullable<LimitSetup["clientIp"]>, Headers, string][] = [
  ["trustedHops: 1 takes the last address", { trustedHops: 1 }, xff, "198.51.100.2"],
  [
    "trustedHops reads several header lines as one",
    { trustedHops: 2 },
    { "x-forwarded-for": ["198.51.100.1", "198.51.100.2"] },
    "198.51.100.1",
  ],
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

      it("of a trusted proxy causes no warning; without that setting, a forwarded address causes one", async (web) => {
        for (const [name, proxy, codes] of [
          ["trusted", "one hop", []],
          ["unknown", undefined, ["FLOODGATE_MISSING_PROXY_SETTING"]],
        ] as const) {
          const { onEvent } = web.listen("warning");
          const app = await web.start({ limits: [{ name, policy, onEvent }], ...(proxy && { proxy }) });
          await app.statuses(3, "/", { "x-forwarded-for": "198.51.100.1", forwarded: "for=198.51.100.1" });
          assert.deepEqual(
            web.events.flatMap((event) => (event.type === "warning" ? [event.code] : [])),
            codes,
          );
        }
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

      it("that anyone can forge fails no request of a shadow rule", async (web) => {
        const { onEvent } = web.listen("warning");
        const app = await web.start({ limits: [{ policy, mode: "shadow", onEvent }], proxy: "forgeable" });
        assert.deepEqual(await app.statuses(3), [200, 200, 200]);
        assert.deepEqual(app.codes, []);
      });
    }
  });
}
