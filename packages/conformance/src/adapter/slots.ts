import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { concurrency, fixedWindow } from "@floodgate/core";
import type { Handler } from "./adapter.js";
import { until } from "./clients.js";
import { type AdapterSuite, type App, waitingHandler } from "./web.js";
import { turn, turns } from "./world.js";

/** `concurrency`: a request has a slot while it is in flight. */
export function slotCases({ it }: AdapterSuite): void {
  const policy = concurrency({ limit: 2, hold: "30s" });

  async function untilFree(app: App): Promise<void> {
    while ((await app.peek()).remaining < 2) await turn();
  }

  it("a request holds its slot until its response ends, and the next one gets it", async (web) => {
    const { handler, begun, open } = waitingHandler();
    const app = await web.start({ limits: [{ name: "uploads", policy }], handler });
    const running = [app.get(), app.get()];
    while (begun.length < 2) await turn();
    const rejected = await app.get();
    assert.deepEqual(
      [rejected.status, rejected.headers["retry-after"], rejected.headers["ratelimit-policy"], rejected.headers["ratelimit"]],
      [429, "1", '"uploads";q=2;qu="concurrent-requests"', '"uploads";r=0'],
    );
    open();
    assert.deepEqual(
      (await Promise.all(running)).map(({ status }) => status),
      [200, 200],
    );
    await untilFree(app);
    assert.deepEqual(await app.statuses(5), [200, 200, 200, 200, 200]);
  });

  it("a slot comes back if the client disconnects, and if the handler throws", async (web) => {
    const { handler: waits, begun, open } = waitingHandler();
    const handler: Handler = (request, decision) => {
      if (request.header("x-fault") !== undefined) throw new Error("handler");
      return waits(request, decision);
    };
    const app = await web.start({ limits: [{ policy }], handler });
    const gone = [app.open("/"), app.open("/")];
    while (begun.length < 2) await turn();
    assert.equal((await app.get()).status, 429);
    for (const request of gone) request.destroy();
    await untilFree(app);
    open();
    assert.deepEqual(await app.statuses(3, "/", { "x-fault": "1" }), [500, 500, 500]);
    await untilFree(app);
  });

  it("a slot comes back when a connection closes that the app has taken over", async (web) => {
    const { handler, begun, open } = waitingHandler();
    const app = await web.start({ limits: [{ policy }], handler });
    const responses: ServerResponse[] = [];
    app.server.prependListener("request", (_, response) => responses.push(response));
    app.open("/");
    await until(() => begun.length === 1, "the handler");
    const response = responses[0] as ServerResponse;
    const socket = response.socket as Socket;
    response.detachSocket(socket);
    await turns(3);
    assert.equal((await app.peek()).remaining, 1);
    socket.end("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nby hand");
    const wait = performance.now() + 5000;
    while ((await app.peek()).remaining < 2 && performance.now() < wait) await turn();
    assert.equal((await app.peek()).remaining, 2);
    open();
  });

  it("a request that another limit rejects takes no slot", async (web) => {
    const rules = [
      { name: "at once", key: "ip", policy },
      { name: "a minute", key: "ip", policy: fixedWindow({ limit: 1, window: "1m" }) },
    ];
    const app = await web.start({ limits: [{ rules }] });
    assert.deepEqual(await app.statuses(4), [200, 429, 429, 429]);
    await untilFree(app);
  });
}
