import { connect } from "node:net";
import { serve } from "./lib/child.mjs";

/** Keep-alive connections with one request in flight each. Plain sockets, so that the client costs little. */
const request = "GET / HTTP/1.1\r\nHost: bench\r\nConnection: keep-alive\r\n\r\n";

async function load({ port, connections, status, seconds }) {
  const expected = `HTTP/1.1 ${status} `;
  let requests = 0;
  let others = 0;
  const start = performance.now();
  const until = start + seconds * 1000;
  const connection = () =>
    new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      let text = "";
      socket.setNoDelay(true);
      socket.on("connect", () => socket.write(request));
      socket.on("error", reject);
      socket.on("data", (chunk) => {
        text += chunk.latin1Slice();
        const body = text.indexOf("\r\n\r\n") + 4;
        if (body < 4) return;
        const length = /\r\ncontent-length: (\d+)/i.exec(text);
        if (length === null) return reject(new Error(`A response without Content-Length:\n${text}`));
        if (text.length < body + Number(length[1])) return;
        requests++;
        if (!text.startsWith(expected)) others++;
        text = "";
        if (performance.now() < until) socket.write(request);
        else {
          socket.destroy();
          resolve();
        }
      });
    });
  await Promise.all(Array.from({ length: connections }, connection));
  // The first request passes before the limit is reached.
  if (others > 1) throw new Error(`${others} of ${requests} responses were not ${status}`);
  return { requests, elapsedMs: performance.now() - start };
}

serve(load);
