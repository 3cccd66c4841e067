import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type ServedStore, serveClusterStore } from "../src/index.js";

// Generous, for machines that run other tests at the same time.
const patienceMs = 30_000;
vi.setConfig({ testTimeout: patienceMs });

const children: ChildProcess[] = [];
let served: ServedStore | undefined;
afterEach(() => {
  served?.close();
  served = undefined;
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

/** Starts a child process that uses the store, and serves it unless told otherwise. */
async function start({ timeoutMs = patienceMs, isServed = true } = {}): Promise<ChildProcess> {
  const child = fork(join(__dirname, "child.mjs"), { env: { ...process.env, TIMEOUT_MS: `${timeoutMs}` }, execArgv: [] });
  children.push(child);
  await once(child, "message");
  if (isServed) {
    served ??= serveClusterStore();
    served.connect(child);
  }
  return child;
}

/** Sends a message to a child, and returns its answer. */
async function tell(child: ChildProcess, message: object): Promise<Record<string, unknown>> {
  child.send(message);
  for (;;) {
    const [answer] = await once(child, "message");
    if (!("floodgate" in answer)) return answer;
  }
}
/** A thread that consumes the key of the children once. */
const threadCode = `
  const { parentPort } = require("node:worker_threads");
  const { createLimiter, fixedWindow } = require(${JSON.stringify(join(__dirname, "../../core"))});
  const { clusterStore } = require(${JSON.stringify(join(__dirname, ".."))});
  const store = clusterStore({ port: parentPort });
  const limiter = createLimiter({ name: "jobs", policy: fixedWindow({ limit: 5, window: "365d" }), store, timeoutMs: ${patienceMs} });
  parentPort.once("message", async () => parentPort.postMessage({ remaining: (await limiter.consume("one")).remaining }));
`;
const consume = { receipt: false };

describe("child processes of one parent", () => {
  it("share one count", async () => {
    const [first, second] = [await start(), await start()];
    const remaining = [await tell(first, consume), await tell(second, consume), await tell(first, consume)].map((it) => it["remaining"]);
    expect(remaining).toEqual([4, 3, 2]);
  });

  it("keep the count when one of them is killed", async () => {
    const first = await start();
    await tell(first, consume);
    first.kill("SIGKILL");
    await once(first, "exit");
    expect(await tell(await start(), consume)).toMatchObject({ remaining: 3 });
  });

  it("settle each other's receipts, once", async () => {
    const [first, second] = [await start(), await start()];
    const { receipt } = await tell(first, { receipt: true });
    expect([await tell(second, { settle: receipt }), await tell(first, { settle: receipt })]).toEqual([{ units: -2 }, { units: 0 }]);
  });

  it("decide without the count if the parent does not serve it, and say what to call there", async () => {
    const child = await start({ isServed: false, timeoutMs: 50 });
    const { allowed, degraded, errors } = await tell(child, consume);
    expect({ allowed, degraded }).toEqual({ allowed: true, degraded: true });
    expect(errors).toEqual([expect.stringContaining("It has never answered. Call serveClusterStore() there before workers start")]);
  });

  it("count again as soon as the parent serves them", async () => {
    const child = await start({ isServed: false, timeoutMs: 50 });
    await tell(child, consume);
    served = serveClusterStore();
    served.connect(child);
    await vi.waitFor(async () => expect(await tell(child, consume)).toMatchObject({ degraded: false }), patienceMs);
  });

  it("share it with threads", async () => {
    const child = await start();
    await tell(child, consume);
    const thread = new Worker(threadCode, { eval: true, execArgv: [] });
    const answers: object[] = [];
    thread.on("message", (message) => answers.push(message));
    served?.connect(thread);
    thread.postMessage("consume");
    // The thread ends by itself: its store keeps it alive no longer than its calls.
    await once(thread, "exit");
    expect(answers.at(-1)).toEqual({ remaining: 3 });
  });

  it("end when their work is done: the store keeps no process alive", async () => {
    const child = await start();
    await tell(child, consume);
    child.disconnect();
    await once(child, "exit");
  });
});
