import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import { makeCertificate } from "../certificate.js";
import { ask, atEnd, limitOf, loose, rawConnection, startGateway, startUpstream } from "./support.js";

/** A process of its own, because the connections of both sides would be too many for one: each sends a request, and then nothing. */
const idleClients = `
  const { connect } = require("node:net");
  const { once } = require("node:events");
  const [port, many] = process.argv.slice(1).map(Number);
  const sockets = [];
  process.on("SIGUSR2", () => console.log(sockets.filter((socket) => socket.writable).length + " open"));
  (async () => {
    while (sockets.length < many) {
      const batch = Array.from({ length: 100 }, () => connect(port, "127.0.0.1"));
      sockets.push(...batch);
      await Promise.all(batch.map((socket) => {
        socket.write("GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n");
        return once(socket, "data");
      }));
    }
    console.log(many + " answered");
  })();
`;

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "floodgate-proxy-"));
  atEnd(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

describe("clients", () => {
  it("that send their headers too slowly or too large are answered 408 and 431", async () => {
    const { port } = await startUpstream();
    const [hasty, strict] = [
      await startGateway(port, loose, { clientTimeoutMs: 100 }),
      await startGateway(port, loose, { maxHeaderBytes: 2000 }),
    ];
    const slow = await rawConnection(hasty.port, "GET / HTTP/1.1\r\nHost: a\r\nX-A: ");
    expect(await slow.closed()).toMatch(/^(?:HTTP\/1\.1 408 |$)/);
    const large = await rawConnection(strict.port, `GET / HTTP/1.1\r\nHost: a\r\nX-A: ${"a".repeat(3000)}\r\n\r\n`);
    expect(await large.closed()).toMatch(/^HTTP\/1\.1 431 /);
  });

  it("that stop in the middle of a body are answered 408, but not if the upstream is slow", async () => {
    let arrived = 0;
    const upstream = await startUpstream(async (request, response) => {
      await request.toArray().catch(() => []);
      if (request.complete) arrived++;
      setTimeout(() => response.end("late"), 300);
    });
    const gateway = await startGateway(upstream.port, loose, { clientTimeoutMs: 100 });
    const stopped = await rawConnection(gateway.port, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
    expect(await stopped.closed()).toMatch(/^HTTP\/1\.1 408 /);
    /** On a busy machine, the gateway may read a request so late that its client has taken too long. Then another one is sent. */
    const answerTo = async (bytes: string): Promise<string> => {
      for (const before = arrived; ; ) {
        const connection = await rawConnection(gateway.port, bytes);
        const answer = await connection.until(/late/).catch(String);
        if (arrived > before) return answer;
      }
    };
    for (const waiting of [
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab",
      "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: ",
    ])
      expect(await answerTo(waiting)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("that pipeline are served one request after the other", async () => {
    let open = 0;
    const seen: string[] = [];
    const upstream = await startUpstream((request, response) => {
      seen.push(`${++open} ${request.method} ${request.url}`);
      setTimeout(() => {
        open--;
        response.end("ok");
      }, 100);
    });
    const gateway = await startGateway(upstream.port, limitOf(3));
    const requests = ["POST /1", "GET /2", "GET /3", "GET /4"].map((line) => `${line} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na`);
    const connection = await rawConnection(gateway.port, requests.join(""));
    const statuses = [...(await connection.until(/429 [\s\S]*\}$/)).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, found]) => found);
    expect(statuses).toEqual(["200", "200", "200", "429"]);
    expect(seen).toEqual(["1 POST /1", "1 GET /2", "1 GET /3"]);
  });

  it.each([
    ["a malformed chunk", "Transfer-Encoding: chunked\r\n\r\n1;\na\r\n", "400"],
    ["an unknown coding", "Transfer-Encoding: identity\r\n\r\na", "501"],
    ["a length and chunks", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"],
    ["a space in the name of a header", "X A: 1\r\n\r\n", "400"],
  ])("get the answers to what they sent before a request with %s, and then its own", async (_name, bytes, status) => {
    const gateway = await startGateway((await startUpstream()).port);
    const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const connection = await rawConnection(gateway.port, `${get}${get}POST / HTTP/1.1\r\nHost: a\r\n${bytes}`);
    const statuses = [...(await connection.closed()).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, found]) => found);
    expect(statuses).toEqual(["200", "200", status]);
  });

  it("that leave many pipelined requests behind cause no warning", async () => {
    const warnings: Error[] = [];
    const warn = (warning: Error): void => void warnings.push(warning);
    process.on("warning", warn);
    atEnd(() => process.off("warning", warn));
    const upstream = await startUpstream((request, response) => {
      if (request.url === "/next") response.end();
      else connection.socket.resetAndDestroy();
    });
    const gateway = await startGateway(upstream.port);
    const connection = await rawConnection(gateway.port, "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(20));
    await connection.closed();
    expect((await ask(`${gateway.url}/next`)).status).toBe(200);
    expect(warnings).toEqual([]);
  });

  it("share a limit exactly, however many ask at the same time", async () => {
    let asked = 0;
    const upstream = await startUpstream((_request, response) => {
      asked++;
      response.end();
    });
    const { url } = await startGateway(upstream.port, limitOf(37));
    const answers = await Promise.all(Array.from({ length: 120 }, () => ask(url)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(37);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(83);
    expect(asked).toBe(37);
  });

  const many = process.env["ALL_RUNS"] === "1" ? 10_000 : 500;

  it(`may keep ${many} idle connections open while others are served`, async () => {
    const gateway = await startGateway((await startUpstream()).port);
    const clients = spawn(process.execPath, ["-e", idleClients, `${gateway.port}`, `${many}`], { stdio: ["ignore", "pipe", "inherit"] });
    atEnd(() => clients.kill());
    const lines = createInterface(clients.stdout)[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe(`${many} answered`);
    expect((await ask(gateway.url)).body).toBe("ok");
    clients.kill("SIGUSR2");
    expect((await lines.next()).value).toBe(`${many} open`);
  }, 120_000);
});

describe("the upstream", () => {
  it("may be a Unix socket, and the gateway may listen on one", async () => {
    const directory = await temporaryDirectory();
    const server = createServer((request, response) => void response.end(JSON.stringify(request.headers)));
    await once(server.listen(join(directory, "app.sock")), "listening");
    atEnd(() => {
      server.closeAllConnections();
      server.close();
    });
    const settings = { listen: `unix:${directory}/gate.sock`, trustedPeers: ["unix"] };
    await startGateway(`unix:${directory}/app.sock`, loose, settings);
    const client = connect(join(directory, "gate.sock"));
    atEnd(() => client.destroy());
    client.write("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.7\r\nConnection: close\r\n\r\n");
    const text = Buffer.concat(await client.toArray()).toString();
    expect(text).toContain('"x-forwarded-for":"203.0.113.7"');
    expect(text).toContain('"x-real-ip":"203.0.113.7"');
    expect(text).toContain("for=unknown;proto=http;host=");
  });

  it.each([
    ["signs itself", async () => undefined],
    ["comes from a private authority", () => makeCertificate("authority")],
  ])("may speak TLS: a certificate that %s is checked by its own name, whatever host the client names", async (_, makeAuthority) => {
    const authority = await makeAuthority();
    const { certificate, key } = await makeCertificate("localhost", ["127.0.0.1"], authority);
    const server = createTlsServer({ cert: certificate, key }, (request, response) => void response.end(request.headers.host));
    await once(server.listen(0, "127.0.0.1"), "listening");
    atEnd(() => {
      server.closeAllConnections();
      server.close();
    });
    const directory = await temporaryDirectory();
    const upstreamCaFile = join(directory, "ca.pem");
    await writeFile(upstreamCaFile, (authority ?? { certificate }).certificate);
    const upstream = `https://localhost:${(server.address() as AddressInfo).port}`;
    const headers = { Host: "example.com" };

    const trusting = await startGateway(upstream, loose, { upstreamCaFile });
    expect(await ask(trusting.url, { headers })).toMatchObject({ status: 200, body: "example.com" });
    const strict = await startGateway(upstream);
    const { status, body } = await ask(strict.url, { headers });
    expect([status, JSON.parse(body).detail]).toEqual([502, "The upstream's certificate is not valid, or it does not speak TLS."]);
    const insecure = await startGateway(upstream, loose, { upstreamInsecure: true });
    expect((await ask(insecure.url, { headers })).status).toBe(200);
  });

  it.each([
    ["http://:1", "must be a URL"],
    ["http://a/?b", "it has a query or a fragment"],
    ["http://u:p@a/", "it holds a user or a password"],
  ])("%s is refused at the start", async (upstream, reason) => {
    await expect(startGateway(upstream)).rejects.toThrow(reason);
  });

  it.each(["NTLM", "negotiate"])("lets no client use a connection to the upstream on which another has logged in (%s)", async (scheme) => {
    const users = new WeakMap<Socket, string>();
    const upstream = await startUpstream(({ headers, socket }, response) => {
      if (headers.authorization !== undefined) users.set(socket, headers.authorization);
      response.end(users.get(socket));
    });
    const { url } = await startGateway(upstream.port);
    expect((await ask(url, { headers: { Authorization: `${scheme} ann` } })).body).toBe(`${scheme} ann`);
    expect((await ask(url)).body).toBe("");
  });

  it("gets at most upstreamMaxConnections connections, and further requests wait", async () => {
    const open = new Set<Socket>();
    let most = 0;
    const upstream = await startUpstream((_request, response) => void response.end("ok"));
    upstream.on("connection", (socket) => {
      open.add(socket);
      most = Math.max(most, open.size);
      socket.on("close", () => open.delete(socket));
    });
    const { url } = await startGateway(upstream.port, loose, { upstreamMaxConnections: 2 });
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(url)));
    expect(answers.every(({ body }) => body === "ok")).toBe(true);
    expect(most).toBe(2);
    await expect.poll(() => open.size).toBeLessThanOrEqual(2);
  });
});
