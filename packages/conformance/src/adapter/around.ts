import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { Handler, LimitSetup, Reply } from "./adapter.js";
import type { AdapterSuite } from "./web.js";

const policy = fixedWindow({ limit: 2, window: "1m" });
const names = ["ratelimit-policy", "ratelimit", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];

async function* chunks(): AsyncGenerator<string> {
  for (const chunk of ["one ", "two ", "three"]) {
    await new Promise((resolve) => setImmediate(resolve));
    yield chunk;
  }
}

/** The ways to make a response: name, reply, expected text. */
const replies: [string, () => Reply, string][] = [
  ["of the framework", () => ({ body: { served: true } }), '{"served":true}'],
  ["raw", () => ({ raw: true, body: { served: true } }), '{"served":true}'],
  ["streamed", () => ({ chunks: chunks() }), "one two three"],
];

/** Limits work with raw and streamed responses, with failing handlers, and inside outer middlewares. */
export function aroundCases({ adapter, describe, it }: AdapterSuite): void {
  const limit = (name: string): LimitSetup & { name: string } => ({ name, policy, headers: ["standard", "legacy"] });
  const limits: [string, ReturnType<typeof limit>[]][] = [
    ["one limit", [limit("a")]],
    ["two limits, one after the other", [limit("a"), limit("b")]],
    ["an asynchronous limit", [{ ...limit("a"), key: async () => "everyone" }]],
  ];

  describe("a response", () => {
    for (const [kind, reply, text] of replies) {
      for (const [before, passed] of limits) {
        it(`${kind} arrives complete, each header once, behind ${before}`, async (web) => {
          const app = await web.start({ limits: passed, handler: reply });
          const response = await app.raw("/");
          assert.deepEqual([response.status, response.text], [200, text]);
          assert.deepEqual(
            names.map((name) => response.lines(name)),
            [
              [passed.map(({ name }) => `"${name}";q=2;w=60`).join(", ")],
              [passed.map(({ name }) => `"${name}";r=1;t=45`).join(", ")],
              ["2"],
              ["1"],
              [`${Math.ceil((web.nowMs + 45_000) / 1000)}`],
            ],
          );
        });
      }

      it(`${kind} to a HEAD request has the same headers and no body`, async (web) => {
        const app = await web.start({ limits: [{ policy }], handler: reply });
        const response = await app.send("head");
        assert.equal(response.status, 200);
        assert.equal(response.headers["ratelimit"], '"default";r=1;t=45');
        assert.ok(!response.text);
      });
    }

    it("that onLimited sends raw keeps the rate limit headers", async (web) => {
      const app = await web.start({ policy, onLimited: () => ({ raw: true, status: 418, body: { slow: "down" } }) });
      await app.statuses(2);
      const { status, lines, text } = await app.raw("/");
      assert.deepEqual([status, text], [418, '{"slow":"down"}']);
      assert.deepEqual([lines("ratelimit"), lines("retry-after")], [['"default";r=0;t=45'], ["45"]]);
    });

    for (const [how, handler] of [
      [
        "throws",
        () => {
          throw new Error("handler");
        },
      ],
      ["rejects", () => Promise.reject(new Error("handler"))],
    ] as [string, Handler][]) {
      it(`has the rate limit headers when the handler ${how}`, async (web) => {
        const app = await web.start({ limits: ["a", "b"].map((name) => ({ name, policy })), handler });
        const { status, lines } = await app.raw("/");
        assert.equal(status, 500);
        assert.deepEqual(lines("ratelimit"), ['"a";r=1;t=45, "b";r=1;t=45']);
        assert.deepEqual(app.codes, ["handler"]);
      });
    }

    it("has the headers of the limits before the one that failed", async (web) => {
      const app = await web.start({ limits: [{ policy }, { name: "keyless", policy, key: () => undefined, onMissingKey: "error" }] });
      const { status, lines } = await app.raw("/");
      assert.equal(status, 500);
      assert.deepEqual(lines("ratelimit"), ['"default";r=1;t=45']);
      assert.deepEqual(app.codes, ["FLOODGATE_MISSING_KEY"]);
    });
  });

  if (adapter.outer !== true) return;
  describe("an outer middleware", () => {
    for (const [kind, reply] of replies) {
      it(`sees the same headers as the client: response ${kind}, allowed and limited`, async (web) => {
        const seen: (string | undefined)[][] = [];
        let see: () => void = () => undefined;
        const app = await web.start({
          limits: ["a", "b"].map((name) => ({ name, policy: fixedWindow({ limit: 1, window: "1m" }) })),
          handler: reply,
          outer: (header) => {
            seen.push(["ratelimit-policy", "ratelimit", "retry-after"].map(header));
            see();
          },
        });
        for (const status of [200, 429]) {
          const reached = new Promise<void>((resolve) => {
            see = resolve;
          });
          const response = await app.raw("/");
          await reached;
          assert.equal(response.status, status);
          const sent = ["ratelimit-policy", "ratelimit", "retry-after"].map((name) => response.lines(name)[0]);
          assert.deepEqual(seen.pop(), sent);
          assert.equal(sent[2] !== undefined, status === 429);
        }
      });
    }
  });
}
