import { once } from "node:events";
import { Agent, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { describe, expect, it, vi } from "vitest";
import { ask, atEnd, limitOf, loose, rawConnection, startGateway, startUpstream } from "./support.js";

/** An upstream that answers the headers that it got, as JSON, and then what `answer` adds. */
async function echo(answer: (response: ServerResponse) => void = () => {}): Promise<number> {
  const upstream = await startUpstream((request, response) => {
    answer(response);
    if (!response.headersSent) response.end(JSON.stringify(request.headers));
  });
  return upstream.port;
}

const untrusted = { trustedPeers: ["192.0.2.1"] };

async function headersSeen(url: string, headers: Record<string, string | string[]>): Promise<IncomingHttpHeaders> {
  return JSON.parse((await ask(url, { headers })).body);
}

describe("headers of a request", () => {
  it("says who the client is, whatever an untrusted client says", async () => {
    const { url, port } = await startGateway(await echo(), loose, untrusted);
    const forged = {
      "X-Forwarded-For": "1.1.1.1",
      "X-Forwarded-Host": "evil",
      "X-Forwarded-Proto": "https",
      "X-Forwarded-Prefix": "/evil",
      "X-Real-IP": "1.1.1.1",
      X_Forwarded_For: "1.1.1.1",
      "X-Forwarded_For": "1.1.1.1",
      Forwarded: "for=1.1.1.1",
      "X-Original-URL": "/admin",
      "X-Rewrite-URL": "/admin",
      "X-Client-IP": "1.1.1.1",
      "X-Original-URI": "/admin",
      "X-Original-Method": "DELETE",
      "X-Original-Host": "evil",
    };
    expect(await headersSeen(url, forged)).toEqual({
      host: `127.0.0.1:${port}`,
      connection: "keep-alive",
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "http",
      "x-forwarded-host": `127.0.0.1:${port}`,
      "x-real-ip": "127.0.0.1",
      forwarded: `for=127.0.0.1;proto=http;host="127.0.0.1:${port}"`,
    });
  });

  it("appends to what a trusted peer says", async () => {
    const { url, port } = await startGateway(await echo());
    const sent = {
      "X-Forwarded-For": ["203.0.113.7", "10.0.0.1"],
      "X-Forwarded-Host": "example.com",
      "X-Forwarded-Proto": "https",
      Forwarded: "for=203.0.113.7",
    };
    expect(await headersSeen(url, sent)).toMatchObject({
      "x-forwarded-for": "203.0.113.7, 10.0.0.1, 127.0.0.1",
      "x-forwarded-proto": "https",
      "x-forwarded-host": "example.com",
      "x-real-ip": "10.0.0.1",
      forwarded: `for=203.0.113.7, for=127.0.0.1;proto=http;host="127.0.0.1:${port}"`,
    });
  });

  it("lets nobody name another path or method than the one that rules have matched, not even a trusted peer", async () => {
    // What IIS, Zend and Symfony before 4.1.3 take for the path (CVE-2018-14773), and frameworks for the method.
    const overrides = { "X-Original-URL": "/admin", "X-Rewrite-URL": "/admin", "X-HTTP-Method-Override": "DELETE" };
    const said = { "X-Original-URI": "/", "X-Forwarded-Uri": "/" };
    const { url } = await startGateway(await echo(), loose, { trustedPeers: ["loopback"] });
    const seen = await headersSeen(url, { ...overrides, ...said });
    expect(seen).toMatchObject({ "x-original-uri": "/", "x-forwarded-uri": "/" });
    for (const name of Object.keys(overrides)) expect(seen).not.toHaveProperty(name.toLowerCase());
  });

  it("counts an untrusted client by its own address, whatever it forges", async () => {
    const perIp = "rules: [{ name: ip, key: ip, policy: { algorithm: fixed-window, limit: 2, window: 365d } }]";
    const { url } = await startGateway(await echo(), perIp, untrusted);
    const statuses: number[] = [];
    for (const address of ["1.1.1.1", "2.2.2.2", "3.3.3.3"]) {
      statuses.push(
        (await ask(url, { headers: { "X-Forwarded-For": address, "X-Real-IP": address, Forwarded: `for=${address}` } })).status,
      );
    }
    expect(statuses).toEqual([200, 200, 429]);
  });

  it("keeps what concerns one connection to itself", async () => {
    const { url } = await startGateway(await echo());
    const seen = await headersSeen(url, {
      Connection: "close, X-Secret, X-Forwarded-For",
      "X-Secret": "1",
      "Keep-Alive": "timeout=5",
      "Proxy-Authorization": "Basic a",
      "Proxy-Connection": "keep-alive",
      TE: "gzip;q=0.5, trailers",
      Upgrade: "h2c",
      "X-Kept": "1",
      "X-HTTP-Method-Override": "DELETE",
      X_HTTP_Method_Override: "DELETE",
    });
    expect(seen).toMatchObject({ "x-kept": "1", te: "trailers", "x-forwarded-for": "127.0.0.1", connection: "keep-alive, te" });
    for (const name of ["x-secret", "keep-alive", "proxy-authorization", "proxy-connection", "upgrade", "x-http-method-override"]) {
      expect(seen).not.toHaveProperty(name);
    }
    expect(seen).not.toHaveProperty("x_http_method_override");
  });

  it.each([
    [{ keys: { user: "header:X-User" } }, "X-User"],
    [{ keys: { user: "jwt:sub" } }, "Authorization"],
    [{ plan: "header:x-plan" }, "X-Plan"],
    [{ clientIpHeader: "CF-Connecting-IP" }, "CF-Connecting-IP"],
  ])("with %o, `Connection` takes away none of what a trusted peer says of its client", async (settings, name) => {
    const { url } = await startGateway(await echo(), loose, settings);
    expect(await headersSeen(url, { Connection: `close, ${name}`, [name]: "1" })).toHaveProperty(name.toLowerCase(), "1");
  });

  it("counts by the headers that arrive", async () => {
    const rules =
      "rules: [{ name: key, key: 'header:x-api-key', onMissingKey: ip, policy: { algorithm: fixed-window, limit: 3, window: 365d } }]";
    const { port } = await startGateway(await echo(), rules);
    const arrived: unknown[] = [];
    for (const [i, header] of ["Connection: close, X-Api-Key\r\nX-Api-Key", "X_Api_Key", "X.Api.Key", "X-Api_Key"].entries()) {
      for (const n of [1, 2, 3]) {
        const connection = await rawConnection(port, `GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${header}: ${i}${n}\r\n\r\n`);
        const [, status, body = ""] = /^HTTP\/1\.1 (\d+) [\s\S]*\r\n\r\n(.*)$/.exec(await connection.closed()) ?? [];
        arrived.push(status);
        expect(body).not.toMatch(/api/);
      }
    }
    // None of them has a key for the upstream, so all are one address.
    expect(arrived).toEqual(["200", "200", "200", ...Array(9).fill("429")]);
  });

  it("passes the client's host on, or the upstream's own", async () => {
    const port = await echo();
    const kept = await startGateway(port);
    expect(await headersSeen(kept.url, { Host: "example.com" })).toMatchObject({ host: "example.com", "x-forwarded-host": "example.com" });
    const own = await startGateway(port, loose, { preserveHost: false, via: "gate" });
    expect(await headersSeen(own.url, { Host: "example.com" })).toMatchObject({
      host: `127.0.0.1:${port}`,
      "x-forwarded-host": "example.com",
      via: "1.1 gate",
    });
  });

  it("names the upstream without its default port", async () => {
    const port = await echo();
    const { createConnection } = Agent.prototype;
    // Only root may listen on port 80.
    vi.spyOn(Agent.prototype, "createConnection").mockImplementation(function (this: Agent, options) {
      return createConnection.call(this, { ...options, port: options.port === 80 ? port : options.port });
    });
    atEnd(() => vi.restoreAllMocks());
    const { url } = await startGateway("http://127.0.0.1", loose, { preserveHost: false });
    expect(await headersSeen(url, { Host: "example.com" })).toMatchObject({ host: "127.0.0.1" });
  });

  it("puts the path after the path of the upstream, which `..` cannot leave", async () => {
    const upstream = await startUpstream((request, response) => void response.end(request.url));
    const { url, port } = await startGateway(`http://127.0.0.1:${upstream.port}/base/`);
    for (const path of ["/", "/?a", "/a?b=/.."]) expect((await ask(url + path)).body).toBe(`/base${path}`);
    for (const path of ["/../a", "/a/%2e%2E/b", "/a/..%2fb", "/a\\..\\b"]) {
      const connection = await rawConnection(port, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      expect(await connection.closed()).toMatch(/^HTTP\/1\.1 400 /);
    }
  });

  it("matches rules on the path that the upstream sees, in every spelling", async () => {
    const rules =
      "rules: [{ name: admin, match: { path: /admin }, key: global, policy: { algorithm: fixed-window, limit: 0, window: 365d } }]";
    const { port } = await startGateway(await echo(), rules);
    const statusOf = async (path: string): Promise<string | undefined> => {
      const connection = await rawConnection(port, `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      return (await connection.closed()).split(" ")[1];
    };
    for (const path of ["/admin", "/ADMIN/", "/%61dmin", "//admin", "/admin?x"]) expect(await statusOf(path), path).toBe("429");
    // An ambiguous path is refused before any rule.
    for (const path of ["/x/../admin", "/./admin", "/x/%2e%2e/admin"]) expect(await statusOf(path), path).toBe("400");
  });

  it("passes OPTIONS * on as it is", async () => {
    const upstream = await startUpstream((request, response) => void response.end(`${request.method} ${request.url}`));
    const { port } = await startGateway(upstream.port);
    const connection = await rawConnection(port, "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    expect(await connection.closed()).toContain("OPTIONS *");
  });
});

describe("headers of a response", () => {
  it("keeps what concerns one connection to itself", async () => {
    const port = await echo((response) => {
      response.writeHead(200, {
        Connection: "keep-alive, X-Hop",
        "X-Hop": "1",
        "Keep-Alive": "timeout=99",
        "Proxy-Authenticate": "Basic",
        "X-End": "1",
      });
      response.end("a");
    });
    const { url } = await startGateway(port);
    const { headers } = await ask(url);
    expect(headers).toMatchObject({ "x-end": "1" });
    expect(headers).not.toHaveProperty("x-hop");
    expect(headers).not.toHaveProperty("proxy-authenticate");
    expect(headers["keep-alive"]).not.toBe("timeout=99");
  });

  it("puts the upstream's rate limits after its own", async () => {
    const port = await echo((response) => {
      response.setHeader("RateLimit", '"app";r=1;t=2');
      response.setHeader("RateLimit-Policy", '"app";q=5;w=10');
      response.setHeader("Retry-After", "3");
    });
    const { url } = await startGateway(port);
    const { headers, rawHeaders } = await ask(url);
    expect(headers["ratelimit"]).toMatch(/^"all";r=999999;t=\d+, "app";r=1;t=2$/);
    expect(headers["ratelimit-policy"]).toBe('"all";q=1000000;w=31536000, "app";q=5;w=10');
    expect(rawHeaders.filter((name) => name === "Retry-After")).toHaveLength(1);
  });

  it("shows one limit in headers that hold one: its own, or the upstream's if that has limited the request", async () => {
    let status = 200;
    const port = await echo((response) => {
      response.statusCode = status;
      response.setHeader("X-RateLimit-Remaining", "7");
    });
    const { url } = await startGateway(port, limitOf(50), { headers: "legacy" });
    expect((await ask(url)).headers["x-ratelimit-remaining"]).toBe("49");
    status = 429;
    expect((await ask(url)).headers["x-ratelimit-remaining"]).toBe("7");
  });

  it("answers 429 with the same headers and body as the middlewares", async () => {
    const { url } = await startGateway(await echo(), limitOf(0));
    const { status, headers, body } = await ask(url, { method: "POST", body: "a" });
    expect(status).toBe(429);
    expect(headers).toMatchObject({ "content-type": "application/problem+json", "cache-control": "no-store" });
    expect(JSON.parse(body)).toMatchObject({ title: "Quota exceeded", "violated-policies": ["all"] });
  });

  it.each([
    ["HEAD", 200, "HEAD", { "Content-Length": "5" }, "5"],
    ["204", 204, "GET", {}, undefined],
    ["304", 304, "GET", { "Content-Length": "5", ETag: '"a"' }, "5"],
    ["205", 205, "GET", {}, "0"],
  ] as const)("has no body for %s, and the connection can be used again", async (_name, status, method, headers, length) => {
    const port = await echo((response) => {
      response.writeHead(status, headers);
      response.end();
    });
    const gateway = await startGateway(port);
    const request = `${method} / HTTP/1.1\r\nHost: a\r\n\r\n`;
    const connection = await rawConnection(gateway.port, request);
    await connection.until(/\r\n\r\n/);
    connection.socket.write(request);
    const text = await connection.until(/\r\n\r\n[\s\S]*\r\n\r\n/);
    expect(text.match(new RegExp(`HTTP/1\\.1 ${status} `, "g"))).toHaveLength(2);
    expect(/content-length: (\d+)/i.exec(text)?.[1]).toBe(length);
    expect(text).not.toMatch(/transfer-encoding/i);
  });

  it("ends the connection of an HTTP/1.0 client after a body without a length", async () => {
    const port = await echo((response) => {
      response.write("a");
      response.end("b");
    });
    const gateway = await startGateway(port);
    const connection = await rawConnection(gateway.port, "GET / HTTP/1.0\r\n\r\n");
    const text = await connection.closed();
    expect(text).toMatch(/\r\n\r\nab$/);
    expect(text).not.toMatch(/transfer-encoding/i);
  });

  it("passes hints (103) and the trailers of responses on, but no trailers of requests, which no rule has seen", async () => {
    const upstream = await startUpstream(async (request, response) => {
      for await (const _ of request);
      response.writeEarlyHints({ link: ["</a.css>; rel=preload; as=style", "</b.js>; rel=preload"] });
      response.writeHead(200, { Trailer: "X-Sum, Content-Length" });
      response.write("a");
      response.addTrailers({ "X-Sum": JSON.stringify([request.headers.trailer, request.trailers]) });
      response.end();
    });
    const gateway = await startGateway(upstream.port);
    const connection = await rawConnection(
      gateway.port,
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-In\r\nTE: trailers\r\n\r\n1\r\na\r\n0\r\nX-In: 5\r\nX-Real-IP: 1.1.1.1\r\nX-User: ann\r\n\r\n",
    );
    const text = await connection.until(/X-Sum: .*\r\n\r\n$/);
    const hints = "</a.css>; rel=preload; as=style, </b.js>; rel=preload";
    expect(text.startsWith(`HTTP/1.1 103 Early Hints\r\nLink: ${hints}\r\n\r\nHTTP/1.1 200 OK\r\n`)).toBe(true);
    expect(text).toContain("\r\n1\r\na\r\n0\r\nX-Sum: [null,{}]\r\n\r\n");
  });

  it("sends no 1xx in the middle of another response", async () => {
    const upstream = await startUpstream((request, response) => {
      if (request.url === "/first") {
        response.write("a");
        setImmediate(() => response.end("a"));
      } else {
        response.writeProcessing();
        response.end("b");
      }
    });
    const gateway = await startGateway(upstream.port);
    const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
    const connection = await rawConnection(gateway.port, get("/first") + get("/second"));
    const text = await connection.until(/\r\n\r\nb$/);
    expect(text).toMatch(/\r\n0\r\n\r\nHTTP\/1\.1 102 Processing\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(3);
  });

  it("drops the announcement of trailers where none can follow", async () => {
    const upstream = await startUpstream((_request, response) => {
      response.writeHead(200, { Trailer: "X-Sum" });
      response.addTrailers({ "X-Sum": "1" });
      response.end("a");
    });
    const gateway = await startGateway(upstream.port);
    const connection = await rawConnection(gateway.port, "GET / HTTP/1.0\r\n\r\n");
    expect(await connection.closed()).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\na$/);
    const post = await rawConnection(gateway.port, "POST / HTTP/1.1\r\nHost: a\r\nTrailer: X-In\r\nContent-Length: 1\r\n\r\na");
    expect(await post.until(/X-Sum: 1/)).toMatch(/^HTTP\/1\.1 200 /);
    post.socket.destroy();
    await once(post.socket, "close");
  });
});
