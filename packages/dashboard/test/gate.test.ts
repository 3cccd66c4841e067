import { describe, expect, it } from "vitest";
import type { View } from "../src/routes/view.js";
import { whyNotLocal } from "../src/safety/gate.js";

// What real servers and clients on one machine cannot send.

interface Parts {
  readonly remoteAddress?: string | undefined;
  readonly httpVersion?: string | undefined;
  readonly tls?: boolean;
  readonly headers?: Record<string, string>;
}

function view(parts: Parts): View {
  const http2 = parts.httpVersion?.startsWith("2") === true;
  const headers: Record<string, string> = { host: "localhost:3000", ...(!http2 && { connection: "keep-alive" }), ...parts.headers };
  return {
    method: "GET",
    path: "/",
    query: "",
    httpVersion: "httpVersion" in parts ? parts.httpVersion : "1.1",
    tls: parts.tls ?? http2,
    isClosing: () => false,
    remoteAddress: "remoteAddress" in parts ? parts.remoteAddress : "127.0.0.1",
    header: (name) => headers[name],
    headerNames: () => Object.keys(headers),
    body: async () => undefined,
    identity: {},
  };
}

describe("a request comes from this machine", () => {
  it.each(["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])("from %s", (remoteAddress) => {
    expect(whyNotLocal(view({ remoteAddress }))).toBeUndefined();
  });

  it.each(["1.1", "2.0", "2"])("over HTTP/%s", (httpVersion) => {
    expect(whyNotLocal(view({ httpVersion }))).toBeUndefined();
  });

  it("over HTTP/2 with an :authority in place of a Host", () => {
    expect(whyNotLocal(view({ httpVersion: "2.0", headers: { host: undefined as never, ":authority": "localhost" } }))).toBeUndefined();
  });

  it("from a page of its own", () => {
    expect(whyNotLocal(view({ headers: { origin: "http://localhost:3000" } }))).toBeUndefined();
  });
});

describe("a request may come from another machine", () => {
  it.each([undefined, "", "10.0.0.1", "127.0.0.1.evil.example", "::ffff:10.0.0.1", "::2", "fe80::1"])("from %s", (remoteAddress) => {
    expect(whyNotLocal(view({ remoteAddress }))).toMatch("does not come from this machine");
  });

  it.each(["0.9", "1.0", "3.0"])("over HTTP/%s", (httpVersion) => {
    expect(whyNotLocal(view({ httpVersion }))).toMatch("HTTP/");
  });

  it("over HTTP/2 without TLS", () => {
    expect(whyNotLocal(view({ httpVersion: "2.0", tls: false }))).toMatch("without TLS");
  });

  it.each([["1.1"], [undefined]])("with the Connection of a proxy (HTTP version: %s)", (httpVersion) => {
    for (const connection of ["close", "Close", "", "upgrade", undefined as never]) {
      expect(whyNotLocal(view({ httpVersion, headers: { connection } })), connection).toMatch("keep-alive");
    }
    expect(whyNotLocal(view({ httpVersion, headers: { connection: "Keep-Alive" } }))).toBeUndefined();
  });

  it("except HTTP/2 over TLS on a runtime that does not tell the version: it has no Connection", () => {
    expect(whyNotLocal(view({ httpVersion: undefined, tls: true, headers: { connection: undefined as never } }))).toBeUndefined();
    expect(whyNotLocal(view({ httpVersion: "1.1", tls: true, headers: { connection: undefined as never } }))).toMatch("keep-alive");
  });

  it.each([
    "localhost@evil.example",
    "[::1].evil.example",
    "localhost:",
    "localhost:99999999",
    "localhost, evil.example",
    " localhost",
    "",
  ])("with the Host %j", (host) => {
    expect(whyNotLocal(view({ headers: { host } }))).toMatch("Host");
  });

  it("with a loopback Host and another :authority", () => {
    expect(whyNotLocal(view({ httpVersion: "2.0", headers: { ":authority": "evil.example" } }))).toMatch("Host");
  });
});
