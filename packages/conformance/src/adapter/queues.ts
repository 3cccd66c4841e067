import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { leakyBucket } from "@floodgate/core";
import type { LimitSetup } from "./adapter.js";
import type { AdapterSuite, App, Web } from "./web.js";
import { gate, turn } from "./world.js";

/** Timers may fire up to this much early by a finer clock. */
const grainMs = 2;

/** An `onEvent` that counts held requests, and a promise that resolves at `count`. */
function waiters(count: number): { onEvent: NonNullable<LimitSetup["onEvent"]>; waiting: Promise<void> } {
  let seen = 0;
  const { opened: waiting, open } = gate();
  const onEvent: NonNullable<LimitSetup["onEvent"]> = ({ type }) => {
    if (type === "delayed" && ++seen === count) setImmediate(open);
  };
  return { onEvent, waiting };
}

/** `leakyBucket` holds requests until their turn. */
export function queueCases({ it }: AdapterSuite): void {
  const closing = new AsyncLocalStorage<boolean>();
  const slow = leakyBucket({ capacity: 3, leak: 1, every: "1h" });

  /** An app whose queue releases one request an hour. Its first request is served; `waiting` resolves when `count` more are held. */
  async function queue(web: Web, count: number): Promise<{ app: App; served: string[]; waiting: Promise<void> }> {
    const served: string[] = [];
    const { onEvent, waiting } = waiters(count);
    const app = await web.start({
      limits: [{ policy: slow, onEvent }],
      steps: [{ limit: 0, path: "/slow" }, { route: "/slow/:id" }],
      handler: ({ path }) => {
        served.push(path);
        assert.equal(closing.getStore(), undefined, "a handler runs in the async context of its own request");
        return { body: path };
      },
    });
    await app.get("/slow/0");
    return { app, served, waiting };
  }

  it("a queue holds requests until their turn, in order", async (web) => {
    const served: [string | undefined, number][] = [];
    const app = await web.start({
      limits: [{ policy: leakyBucket({ capacity: 4, leak: 1, every: "40ms" }) }],
      handler: (request) => {
        served.push([request.header("x-id"), performance.now()]);
        return {};
      },
    });
    const start = performance.now();
    await app.get("/", { "x-id": "0" });
    // Each request is sent after the previous one was decided, so their order is known.
    const responses: Promise<unknown>[] = [];
    for (const id of ["1", "2", "3"]) {
      responses.push(app.get("/", { "x-id": id }));
      while ((await app.peek()).remaining !== 3 - Number(id)) await turn();
    }
    const full = await app.get();
    assert.equal(full.status, 429);
    await Promise.all(responses);
    assert.deepEqual(
      served.map(([id]) => id),
      ["0", "1", "2", "3"],
    );
    for (const [id, at] of served) assert.ok(at - start >= Number(id) * 40 - grainMs, `${id} was served after ${at - start} ms`);
  });

  it("a queue releases held requests when the middleware is closed", async (web) => {
    const { app, served, waiting } = await queue(web, 2);
    const responses = [app.get("/slow/1"), app.get("/slow/2")];
    await waiting;
    assert.deepEqual(served, ["/slow/0"]);
    closing.run(true, () => app.limits[0]?.close());
    assert.deepEqual(
      (await Promise.all(responses)).map(({ status }) => status),
      [200, 200],
    );
  });

  it("a queue does not serve a client that disconnected while held, and serves the others", async (web) => {
    const { app, served, waiting } = await queue(web, 1);
    const client = app.open("/slow/gone");
    await waiting;
    client.destroy();
    await app.deserted();
    const next = app.get("/slow/2");
    while ((await app.peek()).remaining !== 0) await turn();
    await turn();
    app.limits[0]?.close();
    assert.equal((await next).status, 200);
    assert.deepEqual(served, ["/slow/0", "/slow/2"]);
  });
}
