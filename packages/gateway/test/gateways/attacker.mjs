// Sends requests over many connections at once, in a thread of its own, so that it does not slow the decision server down.
import { once } from "node:events";
import { connect } from "node:net";
import { parentPort, workerData } from "node:worker_threads";

const { port, address, requests, count, connections } = workerData;

/** Sends one request on a connection of its own. Returns the status of the response; 0 if the gateway closed without one. */
async function send(request) {
  const socket = connect({ port, host: "127.0.0.1", localAddress: address });
  socket.setEncoding("latin1").on("error", () => undefined);
  let received = "";
  socket.on("data", (chunk) => (received += chunk)).write(request, "latin1");
  const timer = setTimeout(() => socket.destroy(), 20_000);
  await once(socket, "close").catch(() => undefined);
  clearTimeout(timer);
  return Number(/^HTTP\/1\.\d (\d+)/.exec(received)?.[1] ?? 0);
}

const counts = {};
let next = 0;
await Promise.all(
  Array.from({ length: connections }, async () => {
    while (next < count) {
      const status = await send(requests[next++ % requests.length]);
      counts[status] = (counts[status] ?? 0) + 1;
    }
  }),
);
parentPort.postMessage(counts);
