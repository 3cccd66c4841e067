import { once } from "node:events";
import { connect, createServer, type Http2ServerRequest, type Http2ServerResponse, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { type NodeRequest, type RateLimitMiddleware, rateLimit } from "../src/index.js";

type Http2Middleware = (request: Http2ServerRequest, response: Http2ServerResponse, next: () => void) => void;

/** The statuses that `refundWhen` gets if the app answers by the stream of HTTP/2, which its response does not notice. */
async function reportedStatuses(answer: (stream: ServerHttp2Stream) => void, cancelled = false): Promise<number[]> {
  const reported: number[] = [];
  const limit: RateLimitMiddleware = rateLimit<NodeRequest>({ limit: 9, window: "1m", refundWhen: (status) => reported.push(status) > 0 });
  const server = createServer((request, response) => {
    (limit as unknown as Http2Middleware)(request, response, () => answer(response.stream));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const stream = session.request({ ":path": "/" });
    const closed = once(stream, "close");
    await once(stream, "response");
    if (cancelled) stream.close();
    else stream.resume();
    await closed;
    await expect.poll(() => reported.length).toBe(1);
    return reported;
  } finally {
    session.close();
    server.close();
  }
}

it("a file that the stream of HTTP/2 answers with has its own status, not that of a client who left", async () => {
  expect(await reportedStatuses((stream) => stream.respondWithFile(__filename))).toEqual([200]);
  expect(await reportedStatuses((stream) => stream.respondWithFile(__filename, { ":status": 203 }))).toEqual([203]);
});

it("a client that leaves while the stream of HTTP/2 answers reports 499", async () => {
  expect(await reportedStatuses((stream) => stream.respond({ ":status": 200 }), true)).toEqual([499]);
});
