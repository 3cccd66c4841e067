import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, it } from "vitest";
import { loose, startGateway, startUpstream } from "./support.js";

const clients = 40;

/** Connects all clients, tells that they are connected, and answers what each of them got. */
const program = `
const { parentPort, workerData: { port, clients, connected } } = require("node:worker_threads");
const { connect } = require("node:net");
const one = () => new Promise((resolve) => {
  let answer = "";
  const socket = connect(port, "127.0.0.1", () => {
    socket.write("GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n");
    Atomics.add(connected, 0, 1);
    Atomics.notify(connected, 0);
  });
  socket.on("data", (data) => { answer += data; });
  socket.on("error", ({ code }) => resolve(code));
  socket.on("close", () => resolve(answer.slice(0, 12)));
});
Promise.all(Array.from({ length: clients }, one)).then((answers) => parentPort.postMessage(answers));
`;

it("answers connections that nobody has accepted yet when the gateway closes", async () => {
  const upstream = await startUpstream();
  const { port, close } = await startGateway(upstream.port, loose, { closeMs: 10_000 });
  const connected = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(program, { eval: true, workerData: { port, clients, connected } });
  const answers = once(worker, "message");
  await once(worker, "online");
  // This thread accepts nothing while it waits here. The kernel completes the connections.
  for (let seen = 0; seen < clients; seen = Atomics.load(connected, 0)) Atomics.wait(connected, 0, seen, 10_000);
  await close();
  expect((await answers)[0]).toEqual(Array(clients).fill("HTTP/1.1 200"));
}, 60_000);
