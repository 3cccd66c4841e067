import { describe, expect, it } from "vitest";
import type { View } from "../src/routes/view.js";
import { whyNotLocal } from "../src/safety/local.js";

// What real servers and clients on one machine cannot send.

function view(parts: { remoteAddress?: string | undefined; httpVersion?: string | undefined; headers?: Record<string, string> }): View {
  const headers: Record<string, string> = { host: "localhost:3000", ...parts.headers };
  return {
    method: "GET",
    path: "/",
    query: "",
    httpVersion: "httpVersion" in parts ? parts.httpVersion : "1.1",
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

  it("on a runtime that does not tell the version, if it closes its connection as nginx does", () => {
    expect(whyNotLocal(view({ httpVersion: undefined }))).toBeUndefined();
    expect(whyNotLocal(view({ httpVersion: undefined, headers: { connection: "close" } }))).toMatch("closes its connection");
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
