import assert from "node:assert/strict";
import { constants } from "node:http2";
import { fixedWindow, leakyBucket } from "@floodgate/core";
import type { LimitSetup, Reply } from "./adapter.js";
import { type Client, Http2Client, PipeliningClient, until } from "./clients.js";
import { type AdapterSuite, type App, type Web, waitingHandler } from "./web.js";
import { gate, self, turn, turns } from "./world.js";

/** Clients that disconnect with several open requests on one connection. */
export function leavingCases({ adapter, it }: AdapterSuite): void {
  const many = fixedWindow({ limit: 1000, window: "1m" });
  const slow = leakyBucket({ capacity: 20, leak: 1, every: "1h" });
  const ten = Array.from({ length: 10 }, (_, i) => ({ path: `/${i}` }));
  const route = [{ limit: 0 }, { route: "/:id" }];

  /** An app whose handlers wait to be released, and the statuses that its first limit's refundWhen receives. */
  async function working(
    web: Web,
    limits: (refundWhen: (status: number) => boolean) => readonly LimitSetup[],
    http2 = false,
  ): Promise<{ app: App; begun: readonly string[]; reported: number[]; end: () => void }> {
    const reported: number[] = [];
    const { handler, begun, open } = waitingHandler();
    const passed = limits((status) => reported.push(status) > 0);
    const steps = [...passed.map((_, limit) => ({ limit })), { route: "/:id" }];
    return { app: await web.start({ limits: passed, http2, steps, handler }), begun, reported, end: open };
  }

  /** An app whose queue releases one request an hour. */
  async function queue(web: Web, http2 = false): Promise<{ app: App; served: string[]; delayed: () => number }> {
    const served: string[] = [];
    let delayed = 0;
    const onEvent: NonNullable<LimitSetup["onEvent"]> = ({ type }) => void (type === "delayed" && delayed++);
    const app = await web.start({
      limits: [{ policy: slow, onEvent }],
      http2,
      steps: route,
      handler: ({ path }) => {
        served.push(path);
        return { body: path };
      },
    });
    return { app, served, delayed: () => delayed };
  }

  /** A key function that waits for `go`, and a promise of its `count`th call. */
  function waitingKey(count: number): { key: () => Promise<string>; asked: Promise<void>; go: () => void } {
    const [asked, go] = [gate(), gate()];
    let calls = 0;
    const key = async (): Promise<string> => {
      if (++calls === count) asked.open();
      await go.opened;
      return "k";
    };
    return { key, asked: asked.opened, go: go.open };
  }

  const connect = ({ server }: App, http2: boolean): Promise<Client> => (http2 ? Http2Client : PipeliningClient).connect(server);
  const hangUp = (client: Client): Promise<void> => client.leave();
  const cancelAll =
    (code?: number) =>
    async (client: Client): Promise<void> => {
      if (!(client instanceof Http2Client)) assert.fail("only HTTP/2 cancels requests");
      for (const i of client.streams.keys()) await client.cancel(i, code);
    };
  /** How a client leaves with ten open requests. */
  const leavers = [{ who: "that pipelines and disconnects", http2: false, leave: hangUp }];
  if (adapter.http2 === true) {
    leavers.push(
      { who: "of HTTP/2 that hangs up", http2: true, leave: hangUp },
      { who: "of HTTP/2 that cancels its requests", http2: true, leave: cancelAll() },
      { who: "of HTTP/2 that closes its requests without an error", http2: true, leave: cancelAll(constants.NGHTTP2_NO_ERROR) },
    );
  }

  for (const { who, http2, leave } of leavers) {
    it(`a client ${who} while its requests are handled: each reports 499 once and is refunded`, async (web) => {
      const { app, begun, reported, end } = await working(web, (refundWhen) => [{ policy: many, refundWhen }], http2);
      const asked = http2 ? [...ten, { path: "/10", headers: { ":method": "HEAD" } }] : ten;
      const client = await connect(app, http2);
      client.ask(...asked);
      await until(() => begun.length === asked.length, "the handlers");
      assert.equal((await app.peek()).remaining, 1000 - asked.length);
      await leave(client);
      // Without HTTP/2, some servers notice it when they respond.
      if (!http2) end();
      await until(() => reported.length >= asked.length, "the end of each request");
      end();
      await turns(5);
      assert.deepEqual(reported, Array(asked.length).fill(499));
      assert.equal((await app.peek()).remaining, 1000);
      await client.leave();
    });

    it(`a client ${who} while its requests are held: none is served`, async (web) => {
      const { app, served, delayed } = await queue(web, http2);
      const client = await connect(app, http2);
      client.ask(...ten);
      await until(() => delayed() === 9, "nine delays");
      await leave(client);
      app.limits[0]?.close();
      await turns(5);
      assert.deepEqual(served, ["/0"]);
      await client.leave();
    });
  }

  /** The number of listeners of each event of an emitter. */
  const listeners = (emitter: NodeJS.EventEmitter): string =>
    emitter
      .eventNames()
      .map((name) => `${String(name)} ${emitter.listenerCount(name)}`)
      .sort()
      .join(", ");

  it("a client that pipelines and disconnects before a limit is reached: each request reports 499 once there too", async (web) => {
    const { key, asked, go } = waitingKey(10);
    const { app, reported, end } = await working(web, (refundWhen) => [
      { name: "outer", policy: many, key },
      // After the disconnect the socket has no address.
      { name: "inner", policy: many, key: "global", refundWhen },
    ]);
    const client = await PipeliningClient.connect(app.server);
    client.ask(...ten);
    await asked;
    await client.leave();
    go();
    end();
    await until(() => reported.length >= 10, "the end of each request");
    assert.deepEqual(reported, Array(10).fill(499));
  });

  for (const { http2 } of leavers.slice(0, 2)) {
    it(`clients of HTTP/${http2 ? 2 : 1.1} that disconnect before a limit reads their address cause no errors, and are not served uncounted`, async (web) => {
      const { key, asked, go } = waitingKey(10);
      let reached = 0;
      const { app, begun } = await working(
        web,
        () => [
          // Without an address of its own, it would read that of the socket, which then stays known.
          { name: "outer", policy: many, key, clientIp: () => "192.0.2.1" },
          { name: "by address", policy: many, skip: () => ++reached < 0 },
          { name: "by function", policy: many, key: (_, { ip }) => ip },
        ],
        http2,
      );
      const client = await connect(app, http2);
      client.ask(...ten);
      await asked;
      await client.leave();
      go();
      await until(() => reached === 10, "the limit by address");
      await turns(5);
      assert.deepEqual(app.codes, []);
      // Some servers keep the address.
      const counted = 1000 - ((await app.limits[1]?.limiter.peek(self))?.remaining ?? 0);
      assert.equal(begun.length, counted);
    });
  }

  it("clients that reset the connection at once cause no errors of the limit, and are not served uncounted", async (web) => {
    for (const [name, own] of [
      ["by address", {}],
      ["skipping", { onMissingKey: "skip" }],
      ["by function", { onMissingKey: "skip", key: (_, { ip }) => ip }],
    ] as [string, LimitSetup][]) {
      const served: string[] = [];
      const handler = ({ path }: { readonly path: string }): { body: string } => ({ body: String(served.push(path)) });
      const app = await web.start({ limits: [{ name, policy: many, ...own }], steps: route, handler });
      for (const asked of ten) await (await PipeliningClient.connect(app.server)).askAndReset(asked);
      await turns(5);
      // Koa reports the reset itself on Node 26.
      assert.deepEqual(
        app.codes.filter((code) => code !== "ECONNRESET"),
        [],
        name,
      );
      assert.equal(served.length, 1000 - (await app.peek()).remaining, name);
    }
  });

  it("a client that pipelines and half-closes the connection is still served", async (web) => {
    const { app, served, delayed } = await queue(web);
    Object.assign(app.server, { httpAllowHalfOpen: true });
    const client = await PipeliningClient.connect(app.server);
    client.askLast(...ten);
    await until(() => delayed() === 9, "nine delays");
    await turns(5);
    app.limits[0]?.close();
    assert.deepEqual(await client.answers(10), Array(10).fill(200));
    assert.equal(served.length, 10);
  });

  it("a client that pipelines gets the responses in order, and each request reports its own status", async (web) => {
    const reported: number[] = [];
    const app = await web.start({
      limits: [{ policy: many, refundWhen: (status) => reported.push(status) < 0 }],
      steps: route,
      handler: async ({ path }) => {
        // Later requests finish first.
        for (let i = 10; i > Number(path.slice(1)); i--) await turn();
        return { status: 200 + Number(path.slice(1)), body: path };
      },
    });
    const client = await PipeliningClient.connect(app.server);
    // 204 and 205 are left out: they have no body.
    const asked = ten.filter((_, i) => i < 4 || i > 5);
    client.ask(...asked);
    const statuses = asked.map(({ path }) => 200 + Number(path.slice(1)));
    assert.deepEqual(await client.answers(8), statuses);
    await until(() => reported.length >= 8, "the end of each request");
    assert.deepEqual(reported.sort(), statuses);
  });

  it("a client that pipelines adds at most one listener to its connection, and leaves none after it", async (web) => {
    const open: number[] = [];
    for (const [name, limit] of [
      ["none", undefined],
      ["plain", { policy: many }],
      ["with refundWhen", { policy: many, refundWhen: () => false }],
    ] as const) {
      const limits = limit === undefined ? [] : [{ ...limit, name }];
      const { app, begun, end } = await working(web, () => limits);
      const client = await PipeliningClient.connect(app.server);
      client.ask(...ten.slice(0, 1));
      await until(() => begun.length === 1, "the first handler");
      const one = client.accepted.listenerCount("close");
      client.ask(...ten.slice(1));
      await until(() => begun.length === 10, "the handlers");
      open.push(client.accepted.listenerCount("close"));
      end();
      await client.answers(10);
      await until(() => client.accepted.listenerCount("close") < one, "the last response");
    }
    const [none, plain, reported] = open as [number, number, number];
    assert.equal(plain, none);
    // Adapters that see no socket of Node need none.
    assert.ok(reported <= none + 1, `${reported} listeners with refundWhen, ${none} without a limit`);
  });

  it("a keep-alive connection gains no listeners over thirty requests under many limits", async (web) => {
    const warnings: Error[] = [];
    const warned = (warning: Error): unknown => warnings.push(warning);
    process.on("warning", warned);
    try {
      const limits = Array.from({ length: 12 }, (_, i) => ({ name: `limit-${i}`, policy: many, refundWhen: () => false }));
      const app = await web.start({ limits, steps: [...limits.map((_, limit) => ({ limit })), { route: "/:id" }] });
      const client = await PipeliningClient.connect(app.server);
      const before = listeners(client.accepted);
      for (let i = 10; i <= 30; i += 10) {
        client.ask(...ten);
        await client.answers(i);
      }
      await until(() => listeners(client.accepted) === before, "the last listener to go").catch(() => undefined);
      assert.equal(listeners(client.accepted), before);
      assert.deepEqual(warnings, []);
    } finally {
      process.off("warning", warned);
    }
  });

  // More than the kernel buffers for a client that does not read.
  const megabytes = 16;
  async function* chunks(count = megabytes): AsyncGenerator<string> {
    for (let i = 0; i < count; i++) yield "x".repeat(1_000_000);
  }
  const bodies: [string, () => Reply][] = [["is streamed", () => ({ chunks: chunks() })]];
  if (adapter.seesSending === true) bodies.push(["is in one piece", () => ({ body: "x".repeat(megabytes * 1_000_000) })]);
  for (const [kind, handler] of bodies) {
    it(`a client that disconnects during a response that ${kind} reports status 499`, async (web) => {
      const reported: number[] = [];
      const app = await web.start({ limits: [{ policy: many, refundWhen: (status) => reported.push(status) < 0 }], handler });
      const client = await PipeliningClient.connect(app.server, false);
      client.ask({});
      await until(() => client.accepted.bytesWritten > 0, "the response");
      await client.leave();
      await until(() => reported.length > 0, "the end of the request");
      assert.deepEqual(reported, [499]);
    });
  }

  if (adapter.http2 !== true) return;
  it("a client of HTTP/2 gets the responses, streamed and in one piece, and each request reports its own status", async (web) => {
    const reported: number[] = [];
    const app = await web.start({
      limits: [{ policy: fixedWindow({ limit: 2, window: "1m" }), refundWhen: (status) => reported.push(status) < 0 }],
      http2: true,
      steps: route,
      handler: ({ path }) => (path === "/0" ? { body: path } : { chunks: chunks(1) }),
    });
    const client = await Http2Client.connect(app.server);
    for (let i = 0; i < 3; i++) {
      client.ask({ path: `/${i}` });
      await until(() => client.statuses.length === i + 1, "the response");
    }
    await until(() => reported.length === 2, "the end of each request");
    assert.deepEqual([client.statuses, reported, app.errors], [[200, 200, 429], [200, 200], []]);
    await client.leave();
  });

  it("a client of HTTP/2 that cancels a request before a limit is reached: it reports 499 there and is not held", async (web) => {
    const { key, asked, go } = waitingKey(1);
    const inner = gate();
    const reported: number[] = [];
    const served: string[] = [];
    const app = await web.start({
      limits: [
        { name: "outer", policy: many, key },
        { name: "inner", policy: slow, key: "global", refundWhen: (status) => reported.push(status) < 0, onEvent: inner.open },
      ],
      http2: true,
      handler: ({ path }) => {
        served.push(path);
        return {};
      },
    });
    app.limits[1]?.limiter.consume("global");
    const client = await Http2Client.connect(app.server);
    client.ask({});
    await asked;
    await client.cancel(0);
    go();
    await inner.opened;
    await until(() => reported.length > 0, "the end of the request");
    app.limits[1]?.close();
    await turns(5);
    assert.deepEqual([reported, served], [[499], []]);
    await client.leave();
  });
}
