import { describe, expect, it, test } from "vitest";
import { sourceReader } from "../../src/service/keys.js";
import type { GatewayRequest } from "../../src/service/request.js";

function requestWith(headers: Record<string, string>, fromTrustedPeer = true): GatewayRequest {
  return {
    method: "GET",
    target: "/",
    host: undefined,
    header: (name) => headers[name],
    remoteAddress: "127.0.0.1",
    clientIp: "127.0.0.1",
    fromTrustedPeer,
  };
}

function token(claims: unknown, payload: string = Buffer.from(JSON.stringify(claims)).toString("base64url")): Record<string, string> {
  return { authorization: `Bearer eyJhbGciOiJub25lIn0.${payload}.c2ln` };
}

const claim = (name: string, headers: Record<string, string>) => sourceReader(`jwt:${name}`)(requestWith(headers));

test("a header and a claim are read from a trusted peer only", () => {
  const headers = { "x-user": "ann", ...token({ tenant: "acme" }) };
  for (const [source, value] of [
    ["header:X-User", "ann"],
    ["jwt:tenant", "acme"],
  ] as const) {
    expect(sourceReader(source)(requestWith(headers))).toBe(value);
    expect(sourceReader(source)(requestWith(headers, false))).toBe(undefined);
  }
});

test("an empty header is no key", () => {
  expect(sourceReader("header:x-user")(requestWith({ "x-user": "" }))).toBe(undefined);
});

describe("a claim", () => {
  it.each<[string, unknown, string | undefined]>([
    ["sub", { sub: "ann" }, "ann"],
    ["id", { id: 42 }, "42"],
    ["admin", { admin: false }, "false"],
    ["https://example.com/tenant", { "https://example.com/tenant": "acme" }, "acme"],
    ["sub", { sub: "é" }, "é"],
    ["sub", { sub: null }, undefined],
    ["sub", { sub: ["a"] }, undefined],
    ["sub", { sub: {} }, undefined],
    ["sub", {}, undefined],
    ["constructor", {}, undefined],
    ["__proto__", {}, undefined],
    ["sub", [], undefined],
    ["sub", "text", undefined],
    ["sub", null, undefined],
  ])("%s of %j is %j", (name, claims, value) => {
    expect(claim(name, token(claims))).toBe(value);
  });

  it.each([
    ['{"id":9007199254740993}', "9007199254740993"],
    ['{"id":-175928847299117063,"x":"1759288472991170630\\""}', "-175928847299117063"],
    ['{"x":["\\\\",12345678901234567890],"id":"9007199254740993"}', "9007199254740993"],
    ['{"x":0.1234567890123456789,"id":1234567890123456e1}', "12345678901234560"],
    ['{"x":1234567890123456,"id":7}', "7"],
  ])("of %s is exact above 2^53 too", (json, value) => {
    expect(claim("id", token(undefined, Buffer.from(json).toString("base64url")))).toBe(value);
  });

  it.each<[string, Record<string, string>]>([
    ["no token", {}],
    ["another scheme", { authorization: "Basic YTpi" }],
    ["two parts", { authorization: "Bearer a.b" }],
    ["four parts", { authorization: "Bearer a.b.c.d" }],
    ["no base64url", { authorization: "Bearer a.{}.c" }],
    ["no JSON", token(0, "bm90IGpzb24")],
    ["a huge token", token({ sub: "ann", more: "x".repeat(10_000) })],
    ["two tokens", { authorization: `${token({ sub: "ann" })["authorization"]}, Bearer a.b.c` }],
  ])("of %s is nothing", (_, headers) => {
    expect(claim("sub", headers)).toBe(undefined);
  });
});
