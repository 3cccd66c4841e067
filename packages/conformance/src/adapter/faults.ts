import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { LimitSetup } from "./adapter.js";
import type { AdapterSuite } from "./web.js";
import { turn } from "./world.js";

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
    ["skip", { policy, skip: fail }],
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
export function faultCases({ describe, it }: AdapterSuite): void {
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

      it(`onLimited that throws ${JSON.stringify(reason)} is an error too, and the request is not served`, async (web) => {
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

    it("an error in one request does not affect the next", async (web) => {
      const policy = fixedWindow({ limit: 5, window: "1m" });
      const app = await web.start({ policy, key: (request) => (request.header("x-bad") === undefined ? "key" : throws()) });
      assert.deepEqual(
        [...(await app.statuses(2)), ...(await app.statuses(1, "/", { "x-bad": "1" })), ...(await app.statuses(1))],
        [200, 200, 500, 200],
      );
    });

    it("an error in the handler goes to the framework, and the limit keeps counting", async (web) => {
      const app = await web.start({ limits: [{ policy: fixedWindow({ limit: 1, window: "1m" }) }], handler: rejects });
      assert.deepEqual(await app.statuses(2), [500, 429]);
      assert.deepEqual(app.errors, [fault]);
    });
  });
}

const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code;
