import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { describe, expect, it } from "vitest";
import WebSocket, { WebSocketServer } from "ws";
import { ask, atEnd, limitOf, loose, rawConnection, startGateway, startUpstream } from "./support.js";

/** More than the buffers of a connection hold. */
const large = "x".repeat(20_000_000);

/** An app that sends back what it gets. */
async function startEcho(): Promise<{ port: number; sockets: WebSocketServer; heads: Record<string, unknown>[] }> {
  const server = createServer((_request, response) => void response.end("ok"));
  const sockets = new WebSocketServer({ noServer: true });
  const heads: Record<string, unknown>[] = [];
  server.on("upgrade", (request, socket, head) => {
    heads.push(request.headers);
    if (request.url === "/no") {
      socket.end("HTTP/1.1 403 Forbidden\r\nX-Why: no\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n");
      return;
    }
    if (request.url === "/large") {
      socket.end(`HTTP/1.1 403 Forbidden\r\nContent-Length: ${large.length}\r\n\r\n${large}`);
      return;
    }
    if (request.url === "/stops") {
      socket.write(`HTTP/1.1 403 Forbidden\r\n\r\n${large}`);
      return;
    }
    if (request.url === "/silent") return;
    sockets.handleUpgrade(request, socket, head, (client) => {
      client.on("message", (data, isBinary) => client.send(data, { binary: isBinary }));
      client.on("close", (code) => client.close(code));
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  atEnd(() => {
    for (const client of sockets.clients) client.terminate();
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sockets, heads };
}

const handshake = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

/** An app that upgrades, and never ends its side by itself. */
async function startBare(onUpgrade: (socket: Duplex) => void): Promise<number> {
  const server = createServer();
  let upgraded: Duplex | undefined;
  server.on("upgrade", (_request, socket) => {
    upgraded = socket;
    socket.on("error", () => {});
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    onUpgrade(socket);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  atEnd(() => {
    upgraded?.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function open(port: number, path = "/"): Promise<WebSocket> {
  const client = new WebSocket(`ws://127.0.0.1:${port}${path}`);
  atEnd(() => client.terminate());
  await once(client, "open");
  return client;
}

/** The answer to a handshake that is refused. */
async function refusal(port: number, path = "/"): Promise<{ status: number; headers: Record<string, unknown>; body: string }> {
  const client = new WebSocket(`ws://127.0.0.1:${port}${path}`);
  client.on("error", () => {});
  const [, response] = await once(client, "unexpected-response");
  const chunks: Buffer[] = await response.toArray();
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks).toString() };
}

describe("WebSockets", () => {
  it("pass text, binary data, pings and close codes both ways", async () => {
    const echo = await startEcho();
    const gateway = await startGateway(echo.port);
    const client = await open(gateway.port);
    const back: unknown[] = [];
    client.on("message", (data, isBinary) => back.push(isBinary ? (data as Buffer).length : `${data}`));
    client.send("hello");
    client.send(Buffer.alloc(300_000));
    client.ping("p");
    const [pong] = await once(client, "pong");
    expect(`${pong}`).toBe("p");
    await expect.poll(() => back).toEqual(["hello", 300_000]);
    client.close(4001, "bye");
    const [code] = await once(client, "close");
    expect(code).toBe(4001);
    await expect.poll(() => echo.sockets.clients.size).toBe(0);
  });

  it("get the rate limit headers in their handshake, and the upstream the client's address", async () => {
    const echo = await startEcho();
    const gateway = await startGateway(echo.port, loose, { trustedPeers: ["192.0.2.1"] });
    const client = new WebSocket(`ws://127.0.0.1:${gateway.port}/`, { headers: { "X-Forwarded-For": "1.1.1.1" } });
    atEnd(() => client.terminate());
    const [response] = await once(client, "upgrade");
    expect(response.headers["ratelimit"]).toMatch(/^"all";r=999999/);
    expect(echo.heads[0]).toMatchObject({ upgrade: "websocket", connection: "Upgrade", "x-forwarded-for": "127.0.0.1" });
  });

  it("are counted before the upgrade, and answered 429", async () => {
    const echo = await startEcho();
    const gateway = await startGateway(echo.port, limitOf(1));
    await open(gateway.port);
    const { status, headers, body } = await refusal(gateway.port);
    expect(status).toBe(429);
    expect(headers).toMatchObject({ connection: "close", "content-type": "application/problem+json" });
    expect(headers["retry-after"]).toMatch(/^\d+$/);
    expect(JSON.parse(body)["violated-policies"]).toEqual(["all"]);
    expect(echo.heads).toHaveLength(1);
  });

  it("that the upstream refuses get its answer", async () => {
    const gateway = await startGateway((await startEcho()).port);
    expect(await refusal(gateway.port, "/no")).toMatchObject({ status: 403, headers: { "x-why": "no" }, body: "no" });
  });

  it("that the upstream refuses get a large answer whole, and the end of one that stops", async () => {
    const gateway = await startGateway((await startEcho()).port, loose, { upstreamTimeoutMs: 500 });
    const { status, body } = await refusal(gateway.port, "/large");
    expect([status, body.length]).toEqual([403, large.length]);
    await expect(refusal(gateway.port, "/stops")).rejects.toThrow("aborted");
  });

  it("are answered 502 without an upstream, and 504 by a silent one", async () => {
    const none = await startGateway(1);
    expect(await refusal(none.port)).toMatchObject({ status: 502 });
    const silent = await startGateway((await startEcho()).port, loose, { upstreamTimeoutMs: 50 });
    const { status, body } = await refusal(silent.port, "/silent");
    expect([status, JSON.parse(body).detail]).toEqual([504, "The upstream did not answer in time."]);
  });

  it("are refunded by the status of their handshake", async () => {
    const echo = await startEcho();
    const gateway = await startGateway(echo.port, limitOf(1), { refundStatus: "403" });
    expect((await refusal(gateway.port, "/no")).status).toBe(403);
    await open(gateway.port);
    expect((await refusal(gateway.port)).status).toBe(429);
  });

  it("end on both sides when one side is gone", async () => {
    const echo = await startEcho();
    const gateway = await startGateway(echo.port);
    const first = await open(gateway.port);
    first.terminate();
    await expect.poll(() => echo.sockets.clients.size).toBe(0);
    const second = await open(gateway.port);
    const closed = once(second, "close");
    for (const client of echo.sockets.clients) client.terminate();
    expect((await closed)[0]).toBe(1006);
  });

  it("without data end after tunnelTimeoutMs", async () => {
    const gateway = await startGateway((await startEcho()).port, loose, { tunnelTimeoutMs: 50 });
    const client = await open(gateway.port);
    expect((await once(client, "close"))[0]).toBe(1006);
  });

  it("without data end after upstreamTimeoutMs once the client has ended its side, even if the upstream never ends its own", async () => {
    const upstream = await startBare((socket) => socket.resume());
    const gateway = await startGateway(upstream, loose, { upstreamTimeoutMs: 50 });
    const client = await rawConnection(gateway.port, handshake);
    await client.until(/101 /);
    client.socket.end();
    await client.closed();
  });

  it("pass what the upstream sends after the client has ended its side", async () => {
    const upstream = await startBare((socket) => {
      socket.resume();
      socket.once("end", () => socket.end("late"));
    });
    const gateway = await startGateway(upstream);
    const client = await rawConnection(gateway.port, handshake);
    await client.until(/101 /);
    client.socket.end();
    expect(await client.closed()).toMatch(/\r\n\r\nlate$/);
  });

  it("cannot be asked for behind a request that is not answered yet", async () => {
    const upstream = await startUpstream(() => {});
    const gateway = await startGateway(upstream.port);
    const client = await rawConnection(
      gateway.port,
      "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    expect(await client.closed()).toBe("");
  });
});

describe("the end of the gateway", () => {
  it("waits for requests in flight, ends idle connections at once and WebSockets at the deadline", async () => {
    const echo = await startEcho();
    let finish: (() => void) | undefined;
    const slow = await startUpstream((request, response) => {
      if (request.url === "/slow") finish = () => void response.end("done");
      else response.end("ok");
    });
    const gateway = await startGateway(slow.port, loose, { closeMs: 5000 });
    const sockets = await startGateway(echo.port, loose, { closeMs: 100 });
    const tunnel = await open(sockets.port);
    const idle = await rawConnection(gateway.port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await idle.until(/ok/);
    const busy = await rawConnection(gateway.port, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    await expect.poll(() => finish).toBeDefined();

    const cut = once(tunnel, "close");
    const closed = Promise.all([gateway.close(), sockets.close()]);
    await idle.closed();
    await expect(ask(gateway.url)).rejects.toThrow("ECONNREFUSED");
    finish?.();
    expect(await busy.closed()).toMatch(/^HTTP\/1\.1 200 [\s\S]*Connection: close[\s\S]*done/);
    expect((await cut)[0]).toBe(1006);
    await closed;
  });
});
