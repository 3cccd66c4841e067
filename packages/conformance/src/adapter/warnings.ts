import assert from "node:assert/strict";
import { type FloodgateEvent, fixedWindow } from "@floodgate/core";
import { FaultyStore } from "../faulty-store.js";
import type { LimitSetup } from "./adapter.js";
import type { AdapterSuite, App } from "./web.js";

const policy = fixedWindow({ limit: 100, window: "1m" });

/** A client of IPv6. */
const client = "2001:db8:1:2:3:4:5:6";

/** Mistakes that only traffic shows. */
export function warningCases({ adapter, describe, it }: AdapterSuite): void {
  const codes = (events: readonly FloodgateEvent[]): string[] => events.flatMap((event) => (event.type === "warning" ? [event.code] : []));

  describe("a limit that is made anew for each request", () => {
    it("limits nothing, which is told once", async (web) => {
      const { onEvent } = web.listen("warning");
      const app = await web.start({ limits: [{ limit: 1, window: "1m", onEvent }], anew: true });
      assert.deepEqual(new Set(await app.statuses(9)), new Set([200]));
      assert.deepEqual(codes(web.events), []);
      await app.statuses(21);
      assert.deepEqual(codes(web.events), ["FLOODGATE_MADE_PER_REQUEST"]);
      const [warning] = web.events.filter((event) => event.type === "warning");
      assert.match(warning?.type === "warning" ? warning.message : "", /Call it once, when the app is set up/);
    });

    it("is told nothing where they share a store: then it counts", async (web) => {
      const { onEvent } = web.listen("warning");
      const limits = [{ name: "shared", limit: 5, window: "1m", store: web.store, onEvent } as const];
      const app = await web.start({ limits, anew: true });
      assert.deepEqual(await app.statuses(30), [...Array(5).fill(200), ...Array(25).fill(429)]);
      assert.deepEqual(codes(web.events), []);
    });

    it("is told nothing where an app makes a limit once, or many apps make one each", async (web) => {
      const { onEvent } = web.listen("warning");
      for (let i = 0; i < 30; i++) {
        const app = await web.start({ limits: [{ limit: 100, window: "1m", onEvent }], ownStores: true });
        await app.statuses(i === 0 ? 30 : 1);
      }
      assert.deepEqual(codes(web.events), []);
    });
  });

  describe("a key function that answers the client's whole IPv6 address", () => {
    const through = { clientIp: { trustedHops: 1 } } as const;
    const forwarded = (address: string) => ({ "x-forwarded-for": address });
    const address: LimitSetup["key"] = (request) => request.header("x-forwarded-for");

    for (const [kind, limit] of [
      ["alone", { key: address }],
      ["as a part of a tuple", { key: (request) => [request.header("x-forwarded-for") ?? "", "login"] }],
      ["by promise", { key: async (request) => request.header("x-forwarded-for") }],
      ["under a name", { key: "address", keys: { address } }],
    ] as [string, LimitSetup][]) {
      it(`limits nobody, which is told once: ${kind}`, async (web) => {
        const { onEvent } = web.listen("warning");
        const app = await web.start({ ...limit, ...through, name: "api", policy, onEvent });
        await app.statuses(2, "/", forwarded("192.0.2.1"));
        await app.statuses(2, "/", forwarded("::ffff:192.0.2.1"));
        assert.deepEqual(codes(web.events), []);
        await app.statuses(3, "/", forwarded(client));
        assert.deepEqual(codes(web.events), ["FLOODGATE_KEY_PER_ADDRESS"]);
        const [warning] = web.events.filter((event) => event.type === "warning");
        assert.match(warning?.type === "warning" ? warning.message : "", /"api".* Write key: "ip", or \(req, \{ ip \}\) => ip/);
      });
    }

    for (const [kind, limit] of [
      ["the address that the function is told", { key: (_, { ip }) => ip }],
      ["the name", { key: "ip" }],
      ["another address than the client's", { key: () => "2001:db8::9" }],
      ["a text with colons", { key: () => "user:42:a" }],
      ["each address on purpose", { key: address, ipv6Prefix: 128 }],
    ] as [string, LimitSetup][]) {
      it(`is not meant by ${kind}`, async (web) => {
        const { onEvent } = web.listen("warning");
        const app = await web.start({ ...limit, ...through, policy, onEvent });
        await app.statuses(3, "/", forwarded(client));
        assert.deepEqual(codes(web.events), []);
      });
    }
  });

  describe("a store that is away while nobody listens", () => {
    const during = async (body: () => Promise<void>): Promise<string[]> => {
      const { warn } = console;
      const told: string[] = [];
      console.warn = (message: string) => void told.push(message);
      try {
        await body();
      } finally {
        console.warn = warn;
      }
      return told.map((message) => /^\[floodgate\] (FLOODGATE_STORE_\w+): /.exec(message)?.[1]).filter((code) => code !== undefined);
    };
    const until = async (app: App, degraded: boolean): Promise<void> => {
      while ((await app.get()).body.decision.degraded !== degraded) await new Promise((resolve) => setTimeout(resolve, 20));
    };

    it("is told on the console once, and its return too; who listens has events instead", async (web) => {
      for (const listens of [false, true]) {
        const { onEvent } = web.listen("breaker");
        const store = new FaultyStore(adapter.store(() => web.nowMs));
        const told = await during(async () => {
          const app = await web.start({ policy, store, timeoutMs: 1000, ...(listens ? { onEvent } : {}) });
          store.fault = "rejects";
          assert.deepEqual(await app.statuses(10), Array(10).fill(200));
          store.fault = undefined;
          await until(app, false);
          // It comes and goes: one outage a minute is told.
          store.fault = "rejects";
          await app.statuses(10);
          store.fault = undefined;
          await until(app, false);
        });
        assert.deepEqual(told, listens ? [] : ["FLOODGATE_STORE_DOWN", "FLOODGATE_STORE_BACK"]);
      }
      assert.ok(web.events.some((event) => event.type === "breaker" && event.state === "open"));
    });
  });
}
