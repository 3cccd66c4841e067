import assert from "node:assert/strict";
import { fixedWindow, type Store } from "@floodgate/core";
import type { LimitSetup } from "./adapter.js";
import { type AdapterSuite, turn } from "./web.js";

const fault: Error = new Error("of the app's own");

function throws(): never {
  throw fault;
}

async function rejects(): Promise<never> {
  await turn();
  throw fault;
}

/** Every function of the request that the app may give, each with a fault. */
function faulty(fail: () => never | Promise<never>): [string, LimitSetup][] {
  const policy = fixedWindow({ limit: 5, window: "1m" });
  return [
    ["key", { policy, key: fail }],
    ["a key of the app's own", { policy, key: "user", keys: { user: fail } }],
    ["a part of a tuple", { policy, key: ["global", "user"], keys: { user: fail } }],
    ["policy", { policy: fail }],
    ["cost", { policy, cost: fail }],
    ["skip", { policy, skip: fail }],
    ["plan", { policy, plans: { pro: { limit: 10 } }, plan: fail }],
    ["clientIp", { policy, clientIp: fail }],
    ["clientIp that stands in for a key", { policy, key: () => undefined, onMissingKey: "ip", clientIp: fail }],
    [
      "a rule's key",
      {
        rules: [
          { name: "all", policy, key: "global" },
          { name: "one", policy, key: fail },
        ],
      },
    ],
    [
      "a rule's match",
      {
        rules: [
          { name: "all", policy, key: "global" },
          { name: "one", policy, match: fail },
        ],
      },
    ],
    [
      "a rule's policy",
      {
        rules: [
          { name: "all", policy, key: "global" },
          { name: "one", policy: fail },
        ],
      },
    ],
    [
      "a rule's cost",
      {
        rules: [
          { name: "all", policy, key: "global" },
          { name: "one", policy, cost: fail },
        ],
      },
    ],
  ];
}

/** Faults of the app's own functions: never fail-open, never a 429, never a crash. */
export function faultCases({ describe, it }: AdapterSuite): void {
  describe("faults", () => {
    for (const [how, fail] of [
      ["throws", throws],
      ["rejects", rejects],
    ] as const) {
      for (const [what, limit] of faulty(fail)) {
        it(`${what} that ${how} reaches the framework's error handling, and the request is not served`, async (web) => {
          let served = 0;
          const { onEvent } = web.listen("degraded");
          const app = await web.start({ limits: [{ ...limit, onEvent }], handler: () => ({ body: ++served }) });
          const response = await app.get();
          assert.equal(response.status, 500);
          assert.deepEqual(app.errors, [fault]);
          assert.equal(served, 0);
          assert.equal(response.headers["ratelimit"], undefined);
          // It is no decision, and no fault of the store either.
          assert.deepEqual(web.events, []);
        });
      }
    }

    // What a framework may take for no error at all, or for a word of its own.
    for (const reason of [undefined, null, 0, "", "route", "router"]) {
      const fail = (): never => {
        throw reason;
      };
      it(`what fails with ${JSON.stringify(reason)} is an error all the same, and the request is not served`, async (web) => {
        for (const [what, limit] of [...faulty(fail), ...faulty(async () => fail())]) {
          let served = 0;
          const app = await web.start({ limits: [limit], ownStores: true, handler: () => ({ body: ++served }) });
          assert.equal((await app.get()).status, 500, what);
          assert.equal(served, 0, what);
          assert.deepEqual(app.errors.map(codeOf), ["FLOODGATE_NO_ERROR"], what);
        }
      });

      it(`onLimited that fails with ${JSON.stringify(reason)} is an error all the same, and the request is not served`, async (web) => {
        for (const onLimited of [fail, async () => fail()]) {
          let served = 0;
          const policy = fixedWindow({ limit: 1, window: "1m" });
          const app = await web.start({ limits: [{ policy, onLimited }], ownStores: true, handler: () => ({ body: ++served }) });
          assert.deepEqual(await app.statuses(2), [200, 500]);
          assert.equal(served, 1);
          assert.deepEqual(app.errors.map(codeOf), ["FLOODGATE_NO_ERROR"]);
        }
      });
    }

    it("one request's fault is not the next one's", async (web) => {
      const policy = fixedWindow({ limit: 5, window: "1m" });
      const app = await web.start({ policy, key: (request) => (request.header("x-bad") === undefined ? "key" : throws()) });
      assert.deepEqual(
        [...(await app.statuses(2)), ...(await app.statuses(1, "/", { "x-bad": "1" })), ...(await app.statuses(1))],
        [200, 200, 500, 200],
      );
    });

    it("a fault in one rule charges none of the others", async (web) => {
      const policy = fixedWindow({ limit: 5, window: "1m" });
      const rules = [
        { name: "all", policy, key: "global" },
        { name: "one", policy, key: rejects },
      ] as const;
      const app = await web.start({ rules });
      await app.get();
      assert.equal((await app.peek("global")).remaining, 5);
    });

    for (const [what, limit] of [
      ["cost and then key", { cost: rejects, key: throws }],
      ["key and then policy", { key: rejects, policy: throws }],
      ["both parts of a tuple", { key: ["later", "now"], keys: { later: rejects, now: throws } }],
      ["all three, later", { cost: rejects, key: rejects, policy: rejects }],
    ] as [string, LimitSetup][]) {
      it(`two faults of one request are one error, and none is left unhandled: ${what}`, async (web) => {
        const policy = fixedWindow({ limit: 5, window: "1m" });
        const unhandled = await unhandledDuring(async () => {
          const app = await web.start({ policy, ...limit });
          assert.equal((await app.get()).status, 500);
          assert.deepEqual(app.errors, [fault]);
        });
        assert.deepEqual(unhandled, []);
      });
    }

    it("faults of two rules are one error, and none is left unhandled", async (web) => {
      const policy = fixedWindow({ limit: 5, window: "1m" });
      const unhandled = await unhandledDuring(async () => {
        const app = await web.start({
          rules: [
            { name: "a", policy, key: rejects },
            { name: "b", policy, key: throws },
          ],
        });
        assert.equal((await app.get()).status, 500);
        assert.deepEqual(app.errors, [fault]);
      });
      assert.deepEqual(unhandled, []);
    });

    it("a store's fault is never a 429", async (web) => {
      const broken: Store<"sync"> = { mode: "sync", consume: throws, consumeAll: throws, peek: throws, settle: throws, reset: throws };
      const app = await web.start({ policy: fixedWindow({ limit: 5, window: "1m" }), store: broken });
      const { status, headers } = await app.get();
      assert.notEqual(status, 429);
      assert.equal(headers["ratelimit"], undefined);
    });

    it("a handler's own fault is the framework's, and the limit stands", async (web) => {
      const app = await web.start({ limits: [{ policy: fixedWindow({ limit: 1, window: "1m" }) }], handler: rejects });
      assert.deepEqual(await app.statuses(2), [500, 429]);
      assert.deepEqual(app.errors, [fault]);
    });
  });
}

const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code;

/** The rejections that nobody handled while something ran. */
export async function unhandledDuring(run: () => Promise<void>): Promise<unknown[]> {
  const unhandled: unknown[] = [];
  const before = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", (reason) => unhandled.push(reason));
  try {
    await run();
    await turn();
    await turn();
  } finally {
    process.removeAllListeners("unhandledRejection");
    for (const listener of before) process.on("unhandledRejection", listener);
  }
  return unhandled;
}
