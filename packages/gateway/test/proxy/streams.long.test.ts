import { createHash } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ask, atEnd, limitOf, loose, rawConnection, startGateway, startRaw, startUpstream, textOf } from "./support.js";

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
