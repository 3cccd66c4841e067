import { createHash } from "node:crypto";
import { once } from "node:events";
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { connect, createServer, Socket } from "node:net";
import { Readable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ask, atEnd, limitOf, loose, rawConnection, startGateway, startUpstream, textOf } from "./support.js";

/** An upstream that speaks raw bytes. `talk` gets each connection. */
async function startRaw(talk: (socket: Socket, count: number) => void): Promise<number> {
  let count = 0;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    atEnd(() => socket.destroy());
    talk(socket, ++count);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  atEnd(() => server.close());
  return (server.address() as { port: number }).port;
}

describe("bodies", () => {
  it("stream 100 MB both ways, unchanged and without being collected", async () => {
    const megabyte = Buffer.alloc(2 ** 20);
    for (let i = 0; i < megabyte.length; i++) megabyte[i] = (i * 31) % 251;
    const total = 100;
    const hash = createHash("sha256");
    const upstream = await startUpstream((incoming, response) => {
      // What arrives goes back at once.
      response.writeHead(200, { "Content-Length": `${incoming.headers["content-length"]}` });
      incoming.pipe(response);
    });
    const { url } = await startGateway(upstream.port);
    let largest = 0;
    function* body() {
      for (let i = 0; i < total; i++) {
        megabyte[0] = i;
        hash.update(megabyte);
        largest = Math.max(largest, process.memoryUsage().arrayBuffers);
        yield Buffer.from(megabyte);
      }
    }
    const sent = request(url, { method: "POST", headers: { "Content-Length": total * megabyte.length } });
    const before = process.memoryUsage().arrayBuffers;
    Readable.from(body()).pipe(sent);
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const back = createHash("sha256");
    for await (const chunk of response) back.update(chunk);
    expect(back.digest("hex")).toBe(hash.digest("hex"));
    expect(largest - before).toBeLessThan(60 * 2 ** 20);
  });

  it("wait for a client that does not read, while others are served", async () => {
    let written = 0;
    const upstream = await startUpstream((incoming, response) => {
      if (incoming.url !== "/endless") {
        response.end("ok");
        return;
      }
      const chunk = Buffer.alloc(65_536);
      const write = (): void => {
        while (response.write(chunk)) written += chunk.length;
        written += chunk.length;
      };
      response.on("drain", write);
      write();
    });
    const gateway = await startGateway(upstream.port);
    const slow = connect(gateway.port, "127.0.0.1");
    atEnd(() => slow.destroy());
    slow.write("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
    await once(slow, "readable");
    // It stands still once the buffers of the connections are full.
    let last = -1;
    await vi.waitFor(
      () => {
        const stands = written === last;
        last = written;
        expect(stands).toBe(true);
      },
      { interval: 200, timeout: 20_000 },
    );
    expect(written).toBeLessThan(64 * 2 ** 20);
    expect((await ask(gateway.url)).body).toBe("ok");
  });

  it("of a client that trickles arrive as they are sent, while others are served", async () => {
    const arrived: string[] = [];
    const upstream = await startUpstream(async (incoming, response) => {
      for await (const chunk of incoming) arrived.push(`${chunk}`);
      response.end("ok");
    });
    const gateway = await startGateway(upstream.port);
    const slow = await rawConnection(gateway.port, "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
    for (const [i, byte] of ["a", "b", "c"].entries()) {
      expect((await ask(gateway.url)).body).toBe("ok");
      slow.socket.write(byte);
      await expect.poll(() => arrived.join("")).toHaveLength(i + 1);
    }
    await slow.until(/ok/);
    expect(arrived).toEqual(["a", "b", "c"]);
  });

  it("send server-sent events at once, and their head before the first event", async () => {
    let events: ((text: string) => void) | undefined;
    const upstream = await startUpstream((_request, response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.flushHeaders();
      events = (text) => void response.write(text);
    });
    const gateway = await startGateway(upstream.port);
    const client = await rawConnection(gateway.port, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.until(/text\/event-stream[\s\S]*\r\n\r\n/);
    for (const n of [1, 2, 3]) {
      events?.(`data: ${n}\n\n`);
      await client.until(new RegExp(`data: ${n}\n\n`));
    }
  });

  it("of early answers arrive while the client still sends", async () => {
    const upstream = await startUpstream((_request, response) => {
      response.writeHead(413).end("too large");
    });
    const gateway = await startGateway(upstream.port);
    const client = await rawConnection(gateway.port, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\nabc");
    await client.until(/413[\s\S]*too large/);
    // The rest is read and dropped, and the connection can be used again.
    client.socket.write(Buffer.alloc(2_000_000 - 3));
    client.socket.write("GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.until(/too large[\s\S]*413[\s\S]*too large/);
  });

  it("of an answer arrive, although the upstream closes in the middle of the request", async () => {
    const port = await startRaw((socket) =>
      socket.once("data", () => {
        socket.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large");
        // Unread bytes make a reset of it.
        socket.destroySoon();
      }),
    );
    const gateway = await startGateway(port);
    for (let i = 0; i < 20; i++) {
      const client = await rawConnection(
        gateway.port,
        `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n${"x".repeat(4_000_000)}`,
      );
      expect(await client.until(/\r\n\r\n[\s\S]+/)).toMatch(/^HTTP\/1\.1 413 [\s\S]*too large$/);
      client.socket.destroy();
    }
  });

  it("above maxBodyBytes are refused, with a length and with chunks", async () => {
    let ended = 0;
    const upstream = await startUpstream(async (incoming, response) => {
      await incoming.toArray().catch(() => []);
      if (incoming.complete) ended++;
      response.end("ok");
    });
    const gateway = await startGateway(upstream.port, loose, { maxBodyBytes: 10 });
    expect((await ask(gateway.url, { method: "POST", body: "0123456789" })).status).toBe(200);
    expect((await ask(gateway.url, { method: "POST", body: "0123456789a" })).status).toBe(413);
    const chunked = { "Transfer-Encoding": "chunked" };
    expect((await ask(gateway.url, { method: "POST", headers: chunked, body: "0123456789a" })).status).toBe(413);
    expect(ended).toBe(1);
  });
});

describe("Expect: 100-continue", () => {
  const post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";

  it("is answered by the upstream", async () => {
    const upstream = await startUpstream(async (incoming, response) => void response.end(await textOf(incoming)));
    const asked = vi.fn();
    upstream.on("checkContinue", (incoming, response) => {
      asked();
      response.writeContinue();
      upstream.emit("request", incoming, response);
    });
    const gateway = await startGateway(upstream.port);
    const client = await rawConnection(gateway.port, post);
    expect(await client.until(/\r\n\r\n/)).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    client.socket.write("abc");
    await client.until(/200 OK[\s\S]*abc/);
    expect(asked).toHaveBeenCalledOnce();
  });

  it("is refused by the upstream, and the body is never sent", async () => {
    const upstream = await startUpstream();
    upstream.on("checkContinue", (_request, response) => void response.writeHead(413).end("no"));
    const gateway = await startGateway(upstream.port);
    const client = await rawConnection(gateway.port, post);
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 413 [\s\S]*Connection: close[\s\S]*no/);
  });

  it("is answered 429 by the gateway, and the body is never sent", async () => {
    const gateway = await startGateway((await startUpstream()).port, limitOf(0));
    const client = await rawConnection(gateway.port, post);
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 429 [\s\S]*Connection: close/);
  });
});

describe("a client that leaves", () => {
  it("cancels its request to the upstream", async () => {
    let closed = false;
    const upstream = await startUpstream((incoming, response) => {
      if (incoming.url === "/wait") response.on("close", () => (closed = true));
      else response.end();
    });
    const gateway = await startGateway(upstream.port);
    const client = await rawConnection(gateway.port, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    await ask(gateway.url);
    client.socket.destroy();
    await expect.poll(() => closed).toBe(true);
  });

  it("in the middle of its body leaves no whole request at the upstream", async () => {
    const bodies: boolean[] = [];
    let begun = 0;
    const upstream = await startUpstream((incoming) => {
      begun++;
      incoming.resume();
      incoming.on("error", () => {});
      incoming.on("close", () => bodies.push(incoming.complete));
    });
    const gateway = await startGateway(upstream.port);
    for (const [i, head] of ["Content-Length: 10", "Transfer-Encoding: chunked"].entries()) {
      const client = await rawConnection(gateway.port, `POST / HTTP/1.1\r\nHost: a\r\n${head}\r\n\r\n3\r\nabc\r\n`);
      await expect.poll(() => begun).toBe(i + 1);
      client.socket.end();
    }
    await expect.poll(() => bodies).toEqual([false, false]);
  });
});

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

describe("held requests (leaky bucket)", () => {
  const queueOf = (every: string): string =>
    `rules: [{ name: queue, key: global, policy: { algorithm: leaky-bucket, capacity: 10, leak: 1, every: ${every} } }]`;

  afterEach(() => {
    vi.restoreAllMocks();
  });

  it("pass in their turn", async () => {
    const { url } = await startGateway((await startUpstream()).port, queueOf("250ms"));
    const answers = await Promise.all(Array.from({ length: 4 }, () => ask(url)));
    expect(answers.map(({ body }) => body)).toEqual(["ok", "ok", "ok", "ok"]);
  });

  it("are not passed on if their client has left, and more than maxHeld are refused", async () => {
    const seen: string[] = [];
    const upstream = await startUpstream((incoming, response) => {
      seen.push(`${incoming.url}`);
      response.end("ok");
    });
    // A busy machine needs its time until the client has left.
    const gateway = await startGateway(upstream.port, queueOf("3s"), { maxHeld: 1 });
    await ask(`${gateway.url}/first`);
    const left = await rawConnection(gateway.port, "GET /left HTTP/1.1\r\nHost: a\r\n\r\n");
    await expect.poll(() => ask(`${gateway.url}/refused`)).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
    left.socket.destroy();
    await expect.poll(async () => (await ask(`${gateway.url}/last`)).status).toBe(200);
    expect(seen).not.toContain("/left");
    expect(seen).not.toContain("/refused");
  });
});

describe("refunds", () => {
  it("are by the status of the response", async () => {
    let status = 500;
    const upstream = await startUpstream((_request, response) => void response.writeHead(status).end());
    // A rules file may be shared with Envoy.
    const rules = limitOf(2).replace("]", ", { name: mesh, match: { domain: edge }, limit: 1, window: 1m }]");
    const { url } = await startGateway(upstream.port, rules, { refundStatus: "5xx,404" });
    const statuses: number[] = [];
    for (status of [500, 404, 503, 200, 500, 201, 200]) {
      statuses.push((await ask(url)).status);
      await turn();
    }
    expect(statuses).toEqual([500, 404, 503, 200, 500, 201, 429]);
  });
});
