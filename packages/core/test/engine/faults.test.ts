import assert from "node:assert/strict";
import { fixedWindow, type Store } from "../../src/index.js";
import { describe, it, type LimitSetup, turn, unhandledDuring } from "./app.js";

const fault: Error = new Error("of the app's own");

function throws(): never {
  throw fault;
}

async function rejects(): Promise<never> {
  await turn();
  throw fault;
}

/** One limit for each option that takes a function; the function fails. */
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

/** When the app's own functions fail, the request fails: it is not allowed, not a 429, and does not crash the process. */
describe("errors", () => {
  for (const [how, fail] of [
    ["throws", throws],
    ["rejects", rejects],
  ] as const) {
    for (const [what, limit] of faulty(fail)) {
      it(`${what} that ${how} reaches the framework's error handler, and the request is not served`, async (web) => {
        let served = 0;
        const { onEvent } = web.listen("degraded");
        const app = await web.start({ limits: [{ ...limit, onEvent }], handler: () => ({ body: ++served }) });
        const response = await app.get();
        assert.equal(response.status, 500);
        assert.deepEqual(app.errors, [fault]);
        assert.equal(served, 0);
        assert.equal(response.headers["ratelimit"], undefined);
        // Neither a decision nor a store error is reported.
        assert.deepEqual(web.events, []);
      });
    }
  }

  // Frameworks may treat these as no error, or as a special word ("route", "router").
  for (const reason of [undefined, null, 0, "", "route", "router"]) {
    const fail = (): never => {
      throw reason;
    };
    it(`a function that throws ${JSON.stringify(reason)} is an error too, and the request is not served`, async (web) => {
      for (const [what, limit] of [...faulty(fail), ...faulty(async () => fail())]) {
        let served = 0;
        const app = await web.start({ limits: [limit], ownStores: true, handler: () => ({ body: ++served }) });
        assert.equal((await app.get()).status, 500, what);
        assert.equal(served, 0, what);
        assert.deepEqual(app.errors.map(codeOf), ["FLOODGATE_NO_ERROR"], what);
      }
    });
  }

  it("an error in one request does not affect the next", async (web) => {
    const policy = fixedWindow({ limit: 5, window: "1m" });
    const app = await web.start({ policy, key: (request) => (request.header("x-bad") === undefined ? "key" : throws()) });
    assert.deepEqual(
      [...(await app.statuses(2)), ...(await app.statuses(1, "/", { "x-bad": "1" })), ...(await app.statuses(1))],
      [200, 200, 500, 200],
    );
  });

  it("an error in one rule charges no other rule", async (web) => {
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
    it(`two errors in one request reach the error handler once, with no unhandled rejection: ${what}`, async (web) => {
      const policy = fixedWindow({ limit: 5, window: "1m" });
      const unhandled = await unhandledDuring(async () => {
        const app = await web.start({ policy, ...limit });
        assert.equal((await app.get()).status, 500);
        assert.deepEqual(app.errors, [fault]);
      });
      assert.deepEqual(unhandled, []);
    });
  }

  it("errors in two rules reach the error handler once, with no unhandled rejection", async (web) => {
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

  it("a store error never becomes a 429", async (web) => {
    const decides = { consume: throws, consumeAll: throws, peek: throws };
    const changes = { settle: throws, reset: throws, block: throws, unblock: throws };
    const broken: Store<"sync"> = { mode: "sync", ...decides, ...changes, keyState: throws };
    const app = await web.start({ policy: fixedWindow({ limit: 5, window: "1m" }), store: broken });
    const { status, headers } = await app.get();
    assert.notEqual(status, 429);
    assert.equal(headers["ratelimit"], undefined);
  });
});

const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code;
