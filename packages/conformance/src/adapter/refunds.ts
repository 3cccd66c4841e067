import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { fixedWindow, tokenBucket } from "@floodgate/core";
import type { Handler, LimitSetup } from "./adapter.js";
import { type AdapterSuite, waitingHandler } from "./web.js";
import { gate, self, turn } from "./world.js";

/** `refundWhen` and `settle`: what a request costs by its response. */
export function refundCases({ it }: AdapterSuite): void {
  const policy = fixedWindow({ limit: 5, window: "1m" });
  const budget = tokenBucket({ capacity: 100, refill: 1, every: "1s" });
  const asked: Handler = (request) => ({ status: Number(request.header("x-status") ?? 200) });

  it("refundWhen receives the status, and refunds the cost if it returns true", async (web) => {
    const seen: number[] = [];
    const { onEvent, heard } = web.listen("refunded");
    const refundWhen = (status: number): boolean => seen.push(status) > 0 && status >= 400;
    const app = await web.start({ limits: [{ policy, cost: 2, refundWhen, onEvent }], handler: asked });
    assert.deepEqual([(await app.get()).status, (await app.get("/", { "x-status": "404" })).status], [200, 404]);
    const event = await heard;
    assert.deepEqual([seen, event.type === "refunded" && event.units], [[200, 404], 2]);
    assert.equal((await app.peek()).remaining, 3);
  });

  it("refundWhen, settle and onEvent run in the async context of their request", async (web) => {
    const context = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const note = (name: string): void => void seen.push(`${name} ${context.getStore()}`);
    const app = await web.start({
      limits: [
        {
          policy,
          key: (request) => {
            context.enterWith(request.header("x-request") as string);
            return "key";
          },
          refundWhen: () => {
            note("refundWhen");
            return false;
          },
          settle: () => {
            note("settle");
            return 2;
          },
          onEvent: ({ type }) => type === "settled" && note(type),
        },
      ],
      handler: asked,
    });
    for (const request of ["one", "two"]) {
      await app.get("/", { "x-request": request });
      while (seen.length % 3 !== 0 || seen.length === 0) await turn();
      assert.deepEqual(seen.splice(0), [`refundWhen ${request}`, `settle ${request}`, `settled ${request}`]);
    }
  });

  it("refundWhen receives the status of a response without a connection, as libraries for AWS Lambda make it", async (web) => {
    const seen: number[] = [];
    const app = await web.start({ limits: [{ policy, refundWhen: (status) => seen.push(status) > 0 && status >= 400 }], handler: asked });
    for (const status of [200, 404]) {
      const { length } = seen;
      app.handle({ "x-status": `${status}` });
      while (seen.length === length) await turn();
    }
    assert.deepEqual(seen, [200, 404]);
    while ((await app.peek()).remaining < 4) await turn();
  });

  it("a list of statuses refunds a client that disconnects only if it names 499", async (web) => {
    const { handler, begun, open } = waitingHandler();
    const rules = ["4xx", "499"].map((statuses) => ({ name: statuses, policy, refundWhen: statuses }));
    const { onEvent, heard } = web.listen("refunded");
    const app = await web.start({ limits: [{ rules, onEvent }], handler });
    const request = app.open("/");
    while (begun.length < 1) await turn();
    request.destroy();
    const event = await heard;
    assert.equal(event.type === "refunded" && event.name, "499");
    open();
    assert.equal((await app.peek(self, "4xx")).remaining, 4);
  });

  it("refundWhen receives the error's status when the handler throws", async (web) => {
    const { onEvent, heard } = web.listen("refunded");
    const handler = (): never => {
      throw new Error("handler");
    };
    const app = await web.start({ limits: [{ policy, refundWhen: (status) => status === 500, onEvent }], handler });
    assert.equal((await app.get()).status, 500);
    await heard;
    assert.equal((await app.peek()).remaining, 5);
  });

  it("refundWhen refunds an earlier limit when a later one responds with 429", async (web) => {
    const { onEvent, heard } = web.listen("refunded");
    const outer = { name: "outer", policy, refundWhen: (status: number) => status === 429, onEvent };
    const app = await web.start({ limits: [outer, { name: "inner", policy: fixedWindow({ limit: 1, window: "1m" }) }] });
    assert.deepEqual(await app.statuses(2), [200, 429]);
    await heard;
    assert.equal((await app.peek()).remaining, 4);
  });

  for (const kind of ["while its handler works", "while its response is streamed", "while its key is looked up"]) {
    it(`refundWhen receives status 499 if the client disconnects ${kind}`, async (web) => {
      const [reached, go] = [gate(), gate()];
      const statuses: number[] = [];
      const { onEvent, heard } = web.listen("refunded");
      async function* chunks(): AsyncGenerator<string> {
        yield "one";
        reached.open();
        await go.opened;
        yield "two";
      }
      const handler: Handler = async () => {
        if (kind.endsWith("streamed")) return { chunks: chunks() };
        reached.open();
        await go.opened;
        return { body: "late" };
      };
      const key = async (): Promise<string> => {
        if (kind.endsWith("looked up")) {
          reached.open();
          await go.opened;
        }
        return self;
      };
      const refundWhen = (status: number): boolean => statuses.push(status) > 0;
      const app = await web.start({ limits: [{ policy, refundWhen, onEvent, key }], handler });
      const client = app.open("/");
      client.on("response", (response) => response.on("error", () => undefined).resume());
      await reached.opened;
      client.destroy();
      await app.deserted();
      go.open();
      await heard;
      assert.deepEqual(statuses, [499]);
      assert.equal((await app.peek()).remaining, 5);
    });
  }

  it("settle receives the response, and charges the real cost", async (web) => {
    const { onEvent, heard } = web.listen("settled");
    const settle: LimitSetup["settle"] = (_, response) => (response?.status === 201 ? 60 : 0);
    const app = await web.start({ limits: [{ policy: budget, cost: 10, settle, onEvent }], handler: () => ({ status: 201 }) });
    assert.equal((await app.get()).status, 201);
    await heard;
    assert.equal((await app.peek()).remaining, 40);
  });

  it("settle may return a promise: then a client that disconnects early still pays the real cost", async (web) => {
    const { onEvent, heard } = web.listen("settled");
    const [begun, counted] = [gate(), gate()];
    const app = await web.start({
      limits: [{ policy: budget, cost: 10, settle: () => counted.opened.then(() => 80), onEvent }],
      handler: async () => {
        begun.open();
        await counted.opened;
        return {};
      },
    });
    const request = app.open("/");
    await begun.opened;
    request.destroy();
    await app.deserted();
    assert.equal((await app.peek()).remaining, 90);
    counted.open();
    await heard;
    assert.equal((await app.peek()).remaining, 20);
  });
}
