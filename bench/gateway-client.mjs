import { connect } from "node:net";
import { Client, credentials } from "@grpc/grpc-js";
import { serve } from "./lib/child.mjs";

/** Sends requests one after the other on each connection (HTTP) or on one connection (gRPC), and measures each. */
async function load({ protocol, port, connections, path, seconds }) {
  const latenciesMs = [];
  const start = performance.now();
  const until = start + seconds * 1000;
  const sender = protocol === "grpc" ? overGrpc(port) : overHttp(port, path);
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const send = await sender.open();
      while (performance.now() < until) {
        const sentMs = performance.now();
        await send();
        latenciesMs.push(performance.now() - sentMs);
      }
    }),
  );
  const elapsedMs = performance.now() - start;
  sender.close();
  latenciesMs.sort((a, b) => a - b);
  return { requests: latenciesMs.length, elapsedMs, p99Ms: latenciesMs[Math.floor(latenciesMs.length * 0.99)] };
}

/** Plain sockets, so that the client costs little. */
function overHttp(port, path) {
  const sockets = [];
  const request = `GET ${path} HTTP/1.1\r\nHost: bench\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /users/42?page=2\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n`;
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
      const isOk = /^HTTP\/1\.1 20[04] /.test(text);
      const answer = text;
      text = "";
      if (isOk) answered();
      else failed(new Error(`Unexpected answer:\n${answer}`));
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

function overGrpc(port) {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const same = (bytes) => bytes;
  const path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
  const send = () =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, same, same, rlsRequest, (error, answer) => {
        if (error === null && answer[1] === 1) resolve();
        else reject(error ?? new Error("OVER_LIMIT"));
      });
    });
  return { open: async () => send, close: () => client.close() };
}

serve(load);
