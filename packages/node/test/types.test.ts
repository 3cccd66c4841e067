import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttp2Server, type Http2ServerRequest } from "node:http2";
import connect from "connect";
import { expectTypeOf, test } from "vitest";
import { type Decision, decisionOf, fixedWindow, type NodeRequest, rateLimit } from "../src/index.js";

const policy = fixedWindow({ limit: 1, window: "1m" });

test("a limit fits servers of HTTP/1 and HTTP/2, and connect", () => {
  const limit = rateLimit({ policy });
  createServer((request, response) => limit(request, response, () => response.end()));
  createHttp2Server((request, response) => limit(request, response, () => response.end()));
  connect().use(limit).use("/api", limit);
  // h3 takes middlewares of this type.
  expectTypeOf(limit).toExtend<(request: IncomingMessage, response: ServerResponse, next: (error?: Error) => void) => unknown>();
});

test("functions get a request of Node, or the type that they name", () => {
  rateLimit({ policy, key: (request) => request.headers["x-user"]?.toString() });
  rateLimit({ policy, key: (request: IncomingMessage) => request.httpVersion });
  rateLimit({ policy, key: (request: Http2ServerRequest) => request.authority });
  rateLimit({
    policy,
    key: (request, { ip }) => {
      expectTypeOf(request).toEqualTypeOf<NodeRequest>();
      return [ip, request["user"].id];
    },
  });
  rateLimit({ policy, onLimited: (request: IncomingMessage, response: ServerResponse) => response.end(request.url) });
  // @ts-expect-error a misspelt key
  void (() => rateLimit({ policy, key: "usr", keys: { user: () => "1" } }));
});

test("decisionOf is typed", () => {
  expectTypeOf(decisionOf({})).toEqualTypeOf<Decision | undefined>();
});
