import { connect } from "node:net";
import { serve } from "./lib/child.mjs";
import { quantile } from "./lib/report.mjs";

/** Sends requests one after the other on each connection (HTTP) or on one connection (gRPC), and measures each. */
async function load({ isGrpc, port, connections, path, status, seconds }) {
  const latenciesMs = [];
  let others = 0;
  const start = performance.now();
  const until = start + seconds * 1000;
  const sender = isGrpc ? await overGrpc(port) : overHttp(port, path, status);
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const send = await sender.open();
      while (performance.now() < until) {
        const sentMs = performance.now();
        if (!(await send())) others++;
        latenciesMs.push(performance.now() - sentMs);
      }
    }),
  );
  const elapsedMs = performance.now() - start;
  sender.close();
  // The first request passes before a limit is reached.
  if (others > 1) throw new Error(`${others} of ${latenciesMs.length} requests were answered otherwise than expected`);
  return { requests: latenciesMs.length, elapsedMs, p99Ms: quantile(latenciesMs, 0.99) };
}

/** What a gateway sends when it asks about a request. */
const about = "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: /users/42?page=2\r\nX-Forwarded-For: 203.0.113.9\r\n";

/** Plain sockets, so that the client costs little. Sending resolves with whether the status is the expected one, by default 200 or 204. */
function overHttp(port, path, status) {
  const sockets = [];
  const request = `GET ${path} HTTP/1.1\r\nHost: bench\r\n${status === undefined ? about : ""}\r\n`;
  const expected = new RegExp(`^HTTP/1\\.1 ${status ?? "20[04]"} `);
  const open = async () => {
    const socket = connect(port, "127.0.0.1").setNoDelay(true);
    sockets.push(socket);
    let text = "";
    let answered;
    let failed;
    socket.on("error", (error) => failed?.(error));
    socket.on("data", (chunk) => {
      text += chunk.latin1Slice();
      const body = text.indexOf("\r\n\r\n") + 4;
      if (body < 4) return;
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (text.length < body + length) return;
      const isExpected = expected.test(text);
      text = "";
      answered(isExpected);
    });
    await new Promise((resolve) => socket.once("connect", resolve));
    return () =>
      new Promise((resolve, reject) => {
        answered = resolve;
        failed = reject;
        socket.write(request);
      });
  };
  const close = () => {
    for (const socket of sockets) socket.destroy();
  };
  return { open, close };
}

/** Domain "edge", one descriptor with remote_address=203.0.113.9. */
const rlsRequest = Buffer.from("0a0465646765121f0a1d0a0e72656d6f74655f61646472657373120b3230332e302e3131332e39", "hex");

async function overGrpc(port) {
  const { Client, credentials } = await import("@grpc/grpc-js");
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const same = (bytes) => bytes;
  const path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
  const send = () =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, same, same, rlsRequest, (error, answer) => (error ? reject(error) : resolve(answer[1] === 1)));
    });
  return { open: async () => send, close: () => client.close() };
}

serve(load);
