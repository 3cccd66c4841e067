import { once } from "node:events";
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { ask, atEnd, loose, rawConnection, startGateway, startRaw, startUpstream, textOf } from "./support.js";

describe("an upstream that fails", () => {
  const problems = async (answer: Promise<{ status: number; body: string }>) => {
    const { status, body } = await answer;
    return [status, JSON.parse(body).detail];
  };

  it("is answered 502 if it refuses connections", async () => {
    const { url, lines } = await startGateway(1);
    expect(await problems(ask(url))).toEqual([502, "The upstream cannot be reached."]);
    expect(lines).toContainEqual(expect.objectContaining({ reason: "ECONNREFUSED", message: "The upstream cannot be reached." }));
  });

  it("is answered 502 if it closes the connection, and 502 if it speaks nonsense", async () => {
    const closing = await startGateway(await startRaw((socket) => socket.once("data", () => socket.destroy())));
    expect(await problems(ask(closing.url))).toEqual([502, "The upstream closed the connection before it answered."]);
    const nonsense = await startGateway(await startRaw((socket) => socket.once("data", () => socket.end("hello\r\n\r\n"))));
    expect(await problems(ask(nonsense.url))).toEqual([502, "The upstream's answer is not valid HTTP."]);
    expect(nonsense.lines).toContainEqual(
      expect.objectContaining({ reason: "HPE_INVALID_CONSTANT", message: "The upstream's answer is not valid HTTP." }),
    );
  });

  it.each([
    ["a reason with a control character", "HTTP/1.1 200 a\x01b\r\nContent-Length: 0\r\n\r\n"],
    ["101 to an ordinary request", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"],
    ["101 without an upgrade", "HTTP/1.1 101 Switching Protocols\r\n\r\n"],
    ["a status below 100", "HTTP/1.1 099 Less\r\nContent-Length: 0\r\n\r\n"],
    ["a coding that no client has asked for", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
    ["chunks under another name", "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
    ["a coding after the chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
    ["a body that is not chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n"],
    ["another version of HTTP", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"],
    ["1xx without end", "HTTP/1.1 102 Processing\r\n\r\n".repeat(101)],
  ])("is answered 502 if it answers %s, also to a WebSocket", async (name, answer) => {
    const gateway = await startGateway(await startRaw((socket) => socket.once("data", () => socket.write(answer, "latin1"))));
    expect(await problems(ask(gateway.url))).toEqual([502, "The upstream's answer is not valid HTTP."]);
    if (name.startsWith("101 to")) return;
    const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    const socket = await rawConnection(gateway.port, `GET / HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n`);
    expect(await socket.closed()).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n/);
  });

  it.each([
    ["a HEAD with a body", "HEAD", 200, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"],
    ["204 with chunks", "GET", 204, "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["chunks that are named twice", "GET", 200, `HTTP/1.1 200 OK\r\n${"Transfer-Encoding: chunked\r\n".repeat(2)}\r\n2\r\nok\r\n0\r\n\r\n`],
    ["more than its length", "GET", 200, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok more"],
  ])("has answered if it answers %s", async (_name, method, status, answer) => {
    const { url } = await startGateway(await startRaw((socket) => socket.once("data", () => socket.write(answer))));
    const got = await ask(url, { method });
    expect([got.status, got.body]).toEqual([status, method === "GET" && status === 200 ? "ok" : ""]);
  });

  it("is answered 502 if its framing is ambiguous", async () => {
    const answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    const { url } = await startGateway(await startRaw((socket) => socket.once("data", () => socket.end(answer))));
    expect((await problems(ask(url)))[0]).toBe(502);
  });

  it("has answered in time if its answer arrived while the process was blocked", async () => {
    const upstream = await startUpstream((_incoming, response) => {
      response.end("ok");
      const startMs = performance.now();
      while (performance.now() < startMs + 200);
    });
    const { url } = await startGateway(upstream.port, loose, { upstreamTimeoutMs: 100 });
    expect((await ask(url)).status).toBe(200);
  });

  it("is answered 504 if it is silent, and the connection can be used again", async () => {
    const upstream = await startUpstream((incoming, response) => {
      if (incoming.url === "/") response.end("ok");
    });
    const { url } = await startGateway(upstream.port, loose, { upstreamTimeoutMs: 500 });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    atEnd(() => agent.destroy());
    expect(await problems(ask(`${url}/silent`, { agent }))).toEqual([504, "The upstream did not answer in time."]);
    expect((await ask(url, { agent })).body).toBe("ok");
  });

  it.each([
    ["with a length", "Content-Length: 100\r\n\r\nabc"],
    ["with chunks", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"],
  ])("in the middle of a body %s never ends it cleanly", async (_name, answer) => {
    const port = await startRaw((socket) =>
      socket.once("data", () => {
        socket.write(`HTTP/1.1 200 OK\r\n${answer}`);
        setTimeout(() => socket.destroy(), 20);
      }),
    );
    const gateway = await startGateway(port);
    const sent = request(gateway.url).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    await expect(textOf(response)).rejects.toThrow("aborted");
    expect(response.complete).toBe(false);
    const old = await rawConnection(gateway.port, "GET / HTTP/1.0\r\n\r\n");
    await old.closed();
    if (answer.startsWith("Transfer")) expect(old.error?.code).toBe("ECONNRESET");
  });

  it("gets no further request on a connection that it reset after its answer", async () => {
    const closed: Promise<unknown>[] = [];
    const waiting: ClientRequest[] = [];
    const port = await startRaw((socket) => {
      closed.push(once(socket, "close"));
      socket.on("data", (data) => {
        if (`${data}`.endsWith("b")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        else waiting.shift()?.end("b");
      });
    });
    const gateway = await startGateway(port, loose, { upstreamTimeoutMs: 1000 });
    // While earlier bytes wait, Node ends a body with an empty write. It fails if the upstream has answered and reset the connection before.
    const { _write: write } = Socket.prototype;
    vi.spyOn(Socket.prototype, "_write").mockImplementation(function (this: Socket, chunk: Buffer, encoding, done) {
      if (this.remotePort === port && chunk.length === 0) done(Object.assign(new Error("reset"), { code: "ECONNRESET" }));
      else write.call(this, chunk, encoding, this.remotePort === port ? (error) => setImmediate(done, error) : done);
    });
    atEnd(() => vi.restoreAllMocks());
    for (let many = 0; many < 2; many++) {
      const sent = request(gateway.url, { method: "POST", headers: { "Content-Length": 2 } });
      waiting.push(sent);
      sent.write("a");
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      expect(response.statusCode).toBe(200);
      response.resume();
    }
    await Promise.all(closed);
    expect(closed).toHaveLength(2);
  });

  it("gets no request with a body on a connection that it ends as the request arrives", async () => {
    let kept: Socket | undefined;
    const port = await startRaw((socket) => {
      kept = socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    });
    const { url } = await startGateway(port);
    const agent = new Agent({ keepAlive: true });
    atEnd(() => agent.destroy());
    const statuses: unknown[] = [];
    for (let many = 0; many < 20; many++) {
      kept?.end();
      const [response] = (await once(request(url, { method: "POST", agent }).end("a"), "response")) as [IncomingMessage];
      statuses.push(response.statusCode);
      await textOf(response);
      await turn();
    }
    expect(statuses).toEqual(new Array(20).fill(200));
  });

  it("gets a request once more if it closed a kept connection, but no request with a body", async () => {
    const seen: string[] = [];
    const port = await startRaw((socket, count) => {
      socket.on("data", (data) => {
        const line = `${data}`.split(" ", 2).join(" ");
        seen.push(`${count} ${line}`);
        if (line.endsWith("/close")) socket.destroy();
        else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      });
    });
    const { url } = await startGateway(port);
    expect((await ask(url)).body).toBe("ok");
    // The first connection is used again, and closed; the second one is closed too.
    expect((await ask(`${url}/close`)).status).toBe(502);
    expect(seen).toEqual(["1 GET /", "1 GET /close", "2 GET /close"]);
    expect((await ask(url)).body).toBe("ok");
    expect((await ask(`${url}/close`, { method: "POST", body: "a" })).status).toBe(502);
    expect((await ask(url)).body).toBe("ok");
    expect((await ask(`${url}/close`, { method: "POST" })).status).toBe(502);
    expect(seen.slice(3)).toEqual(["3 GET /", "3 POST /close", "4 GET /", "4 POST /close"]);
  });
});
