import assert from "node:assert/strict";
import { constants } from "node:http2";
import { fixedWindow, type Store } from "@floodgate/core";
import type { LimitSetup } from "./adapter.js";
import { Http2Client, until } from "./clients.js";
import type { AdapterSuite } from "./web.js";
import { gate, later, self, turn } from "./world.js";

const fault: Error = new Error("of the app's own");
const policy = fixedWindow({ limit: 5, window: "1m" });

/** One limit for each option that takes a function; the function fails. */
const faulty = (fail: () => never | Promise<never>): [string, LimitSetup][] => [
  ["key", { policy, key: fail }],
  ["skip", { policy, skip: fail }],
  ["rule", { rules: [{ name: "all", policy, key: "global" }, { name: "one", policy, cost: fail }] }], // biome-ignore format: a row
];

/** When the app's own functions fail, the request fails: it is not allowed, not a 429, and does not crash the process. */
export function errorCases({ adapter, it }: AdapterSuite): void {
  // Frameworks may treat most of these as no error, or as a special word ("route", "router").
  const reasons = [fault, undefined, null, 0, "", "route", "router"];
  const codeOf = (reason: unknown): string => (reason === fault ? fault.message : "FLOODGATE_NO_ERROR");
  let reason: unknown;
  const throws = (): never => {
    throw reason;
  };
  const rejects = async (): Promise<never> => {
    await turn();
    throw reason;
  };

  for (const [how, fail] of [
    ["throws", throws],
    ["rejects", rejects],
  ] as const) {
    it(`a function that ${how}, with an error or anything else, reaches the framework's error handler, and the request is not served`, async (web) => {
      for (const [what, limit] of faulty(fail)) {
        let served = 0;
        const { onEvent } = web.listen("degraded");
        const app = await web.start({ limits: [{ ...limit, onEvent }], handler: () => ({ body: ++served }) });
        for (const [i, each] of reasons.entries()) {
          reason = each;
          const { status, headers } = await app.get();
          const seen = [status, served, headers["ratelimit"], app.codes.slice(i)];
          assert.deepEqual(seen, [500, 0, undefined, [codeOf(reason)]], `${what} ${how} ${JSON.stringify(reason)}`);
        }
        assert.equal(app.errors[0], fault);
        // Neither a decision nor a store error is reported.
        assert.deepEqual(web.events, [], what);
      }
    });
  }

  it("onLimited that throws undefined, null, 0, a text or an error is an error of that request", async (web) => {
    for (const onLimited of [throws, rejects]) {
      let served = 0;
      const limit: LimitSetup = { policy: fixedWindow({ limit: 1, window: "1m" }), onLimited };
      const app = await web.start({ limits: [limit], handler: () => ({ body: ++served }) });
      for (const [i, each] of reasons.entries()) {
        reason = each;
        assert.deepEqual([await app.statuses(2), served], [[200, 500], i + 1]);
        assert.deepEqual(app.codes.slice(i), [codeOf(reason)]);
        web.nowMs += 60_000;
      }
    }
  });

  it("an error in the handler goes to the framework, and the limit keeps counting", async (web) => {
    reason = fault;
    const app = await web.start({ limits: [{ policy: fixedWindow({ limit: 1, window: "1m" }) }], handler: rejects });
    assert.deepEqual(await app.statuses(2), [500, 429]);
    assert.deepEqual(app.errors, [fault]);
  });

  for (const left of adapter.seesSending === true ? [1, 0] : []) {
    it(`a request that another part of the server answers while it is decided, ${left === 1 ? "and that passes, is refunded by that answer" : "and that is rejected, causes no error"}`, async (web) => {
      const reported: number[] = [];
      const [asked, decided] = [gate(), gate()];
      let limited = 0;
      const app = await web.start({
        limits: [
          {
            policy: fixedWindow({ limit: 1, window: "1m" }),
            key: () => asked.opened.then(() => "k"),
            refundWhen: (status) => reported.push(status) > 0,
            onLimited: () => void limited++,
            onEvent: ({ type }) => (type === "limited" || type === "refunded") && decided.open(),
          },
        ],
      });
      if (left === 0) await app.limits[0]?.limiter.consume("k");
      // As a timeout does.
      app.server.on("request", (_request, response) => response.writeHead(503).end());
      assert.equal((await app.get()).status, 503);
      asked.open();
      await decided.opened;
      for (let i = 0; i < 5; i++) await turn();
      assert.deepEqual([reported, (await app.peek("k")).remaining], [left === 1 ? [503] : [], left]);
      if (left === 1) return;
      assert.deepEqual(app.errors, []);
      // Adapters of `Request` and `Response` make a response in any case.
      if (adapter.begins === true) assert.equal(limited, 0);
    });
  }

  if (adapter.begins !== true) return;
  const presets = adapter.presets === true ? { presets: { etag: '"page"' } } : {};
  for (const [how, storeOf] of [
    ["now", (store: Store<"sync">) => store],
    ["later", later],
  ] as const) {
    it(`a request that is rejected ${how}, after a middleware sent its headers, is cut off, and the app serves on`, async (web) => {
      let served = 0;
      const answered: unknown[] = [];
      const limit: LimitSetup = { policy, store: storeOf(web.store), onLimited: () => void answered.push("limited") };
      const app = await web.start({ limits: [limit], begins: true, ...presets, handler: () => ({ body: ++served }) });
      await app.limits[0]?.limiter.block(self, "1h");
      for (let i = 0; i < 2; i++) {
        const complete = await new Promise((resolve) => {
          const request = app.open("/").on("close", () => resolve(false));
          request.on("response", (response) =>
            response
              .resume()
              .on("end", () => resolve(response.complete))
              .on("error", () => undefined),
          );
        });
        assert.equal(complete, false);
      }
      assert.deepEqual([served, answered, app.errors], [0, [], []]);
    });
  }

  if (adapter.http2 !== true) return;
  it("a request of HTTP/2 that is rejected after a middleware sent its headers is cut off", async (web) => {
    const app = await web.start({ limits: [{ policy }], begins: true, ...presets, http2: true });
    await app.limits[0]?.limiter.block(self, "1h");
    const client = await Http2Client.connect(app.server);
    client.ask({});
    await until(() => client.streams[0]?.closed === true, "the end of the stream");
    assert.deepEqual([client.statuses, client.streams[0]?.rstCode, app.errors], [[200], constants.NGHTTP2_CANCEL, []]);
    await client.leave();
  });
}
