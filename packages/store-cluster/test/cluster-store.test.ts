import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { MessageChannel } from "node:worker_threads";
import { createLimiter, fixedWindow } from "@floodgate/core";
import { type Charge, createLimit } from "@floodgate/core/store";
import * as fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { clusterStore, serveClusterStore } from "../src/index.js";
import { Marks, redeemed } from "../src/marks.js";
import { addToRuns, machineMs, ofRuns, type Run, version } from "../src/messages.js";
import { connected } from "./connected.js";

const policy = fixedWindow({ limit: 100, window: "365d" });
const limit = createLimit("jobs", policy);
const large = createLimit("large", fixedWindow({ limit: 1000, window: "365d" }));
const patienceMs = 30_000;

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A channel whose messages the test reads. */
function channel(): MessageChannel {
  const made = new MessageChannel();
  closers.push(() => made.port1.close());
  return made;
}

describe("clusterStore", () => {
  it("says what to write in a process that was not forked, in PM2, and for wrong options", () => {
    const { send } = process;
    try {
      Object.assign(process, { send: undefined });
      expect(() => clusterStore()).toThrow(/In the primary write store: serveClusterStore\(\)\.store/);
      process.env["pm_id"] = "0";
      expect(() => clusterStore()).toThrow(/PM2 started this process/);
    } finally {
      delete process.env["pm_id"];
      Object.assign(process, { send });
    }
    expect(() => clusterStore({ port: {} as never })).toThrow(/must be a child process, a worker or a MessagePort/);
    const served = serveClusterStore({ name: "ports" });
    closers.push(served.close);
    for (const port of [null, 5, "port", {}, () => undefined]) {
      expect(() => clusterStore({ port: port as never })).toThrow(/, but was .+\. Write clusterStore\(\{ port: parentPort \}\)\./);
      expect(() => served.connect(port as never)).toThrow(/, but was .+\. Write connect\(child\)\./);
    }
    expect(() => serveClusterStore({ name: "" })).toThrow(/`name` must be a text that is not empty/);
    expect(() => serveClusterStore({ maxKey: 1 } as never)).toThrow(/maxKey/);
  });

  it("sends the calls of one turn in one message, and those that come before its answer in the next", async () => {
    const { port1, port2 } = channel();
    const sizes: number[] = [];
    port1.on("message", ({ calls }) => sizes.push(calls.length));
    const served = serveClusterStore();
    served.connect(port1);
    closers.push(served.close);
    const store = clusterStore({ port: port2 });
    const consumeTwo = () => Promise.all([store.consume(limit, "a", 1, patienceMs), store.consume(limit, "b", 1, patienceMs)]);
    const first = consumeTwo();
    const later = new Promise((resolve) =>
      process.nextTick(() => resolve(Promise.all([consumeTwo(), store.peek(limit, "a", patienceMs)]))),
    );
    await Promise.all([first, later]);
    expect(sizes).toEqual([2, 3]);
  });

  it("sends equal requests with the same deadline as one call, unless a call between them may change what they get", async () => {
    // So that all calls have the same deadline.
    vi.useFakeTimers({ toFake: ["performance"] });
    closers.push(() => vi.useRealTimers());
    const { port1, port2 } = channel();
    const calls: unknown[] = [];
    port1.on("message", (batch) =>
      calls.push(batch.calls.map(([, call, times]: [number, unknown[], number]) => [call[0], call[2], times])),
    );
    let nowMs = 1_789_948_800_000;
    const served = serveClusterStore({ clock: () => nowMs++ });
    served.connect(port1);
    closers.push(served.close);
    const store = clusterStore({ port: port2 });
    const consume = (key: string, cost = 1) => store.consume(limit, key, cost, patienceMs);
    const made = [
      consume("a"),
      consume("b"),
      consume("a"),
      consume("a"),
      consume("a", 2),
      consume("a"),
      store.reset(limit, "a", patienceMs),
    ];
    const decisions = await Promise.all([...made, consume("a", 101), consume("a"), consume("a")]);
    expect(decisions.map((it) => it?.remaining)).toEqual([99, 99, 98, 97, 95, 94, undefined, 100, 99, 98]);
    expect(calls).toEqual([
      [
        ["consume", "a", 3],
        ["consume", "b", 1],
        ["consume", "a", 1],
        ["consume", "a", 1],
        ["reset", "a", 1],
        ["consume", "a", 1],
        ["consume", "a", 2],
      ],
    ]);
  });

  it("sends at most 256 equal requests in one message, and decides all of them", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    closers.push(() => vi.useRealTimers());
    const { port1, port2 } = channel();
    const sizes: number[] = [];
    port1.on("message", ({ calls }) => sizes.push(...calls.map(([, , times]: [number, unknown[], number]) => times)));
    const served = serveClusterStore();
    served.connect(port1);
    closers.push(served.close);
    const store = clusterStore({ port: port2 });
    const asked = Array.from({ length: 600 }, () => store.consume(large, "key", 1, patienceMs));
    const made = await Promise.all(asked);
    expect(sizes).toEqual([256, 256, 88]);
    expect(made.map(({ remaining }) => remaining)).toEqual(made.map((_, n) => 999 - n));
  });

  it("writes decisions of equal requests as runs, and reads them back exactly", () => {
    const number = fc.oneof(fc.constantFrom(-1, 0, 1, 2, 3), fc.maxSafeNat());
    const message = fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom([1, 9], [1, 8], [1, 7], [0, 7]) },
      fc.array(number, { minLength: 2, maxLength: 3 }),
    );
    fc.assert(
      fc.property(fc.array(message), (messages) => {
        const runs: Run[] = [];
        for (const each of messages) addToRuns(runs, each as never);
        expect(ofRuns(JSON.parse(JSON.stringify(runs)))).toEqual(messages);
      }),
    );
  });

  it("is one store with every other over the same port and name, and none with others", () => {
    const { port2 } = channel();
    const [one, same, other] = [clusterStore({ port: port2 }), clusterStore({ port: port2 }), clusterStore({ port: port2, name: "other" })];
    expect(same.scope).toBe(one.scope);
    expect(other.scope).not.toBe(one.scope);
  });

  it("refuses to serve a name twice at once, and says what to write", () => {
    const served = serveClusterStore();
    closers.push(served.close);
    expect(() => serveClusterStore()).toThrow(
      expect.objectContaining({ code: "FLOODGATE_NAME_TAKEN", message: expect.stringContaining('clusterStore({ name: "second" })') }),
    );
    serveClusterStore({ name: "second" }).close();
    served.close();
    const again = serveClusterStore();
    closers.push(again.close);
    served.close();
    expect(() => serveClusterStore()).toThrow(/already serves a store with the name "floodgate"/);
  });

  it("keeps stores of different names apart on one channel", async () => {
    const { port1, port2 } = channel();
    for (const name of ["one", "two"]) {
      const served = serveClusterStore({ name });
      served.connect(port1);
      closers.push(served.close);
    }
    const [one, two] = ["one", "two"].map((name) =>
      createLimiter({ name: "jobs", policy, store: clusterStore({ port: port2, name }), timeoutMs: patienceMs }),
    );
    await one?.consume("key");
    expect((await one?.consume("key"))?.remaining).toBe(98);
    expect((await two?.consume("key"))?.remaining).toBe(99);
  });

  it("charges nothing for a call that arrives after its deadline", () => {
    const { port1, port2 } = channel();
    const served = serveClusterStore();
    closers.push(served.close);
    let listener: (message: unknown) => void = () => undefined;
    const answers: unknown[] = [];
    served.connect({ on: (_, heard) => (listener = heard), off: () => undefined, postMessage: (message) => answers.push(message) });
    const call = (untilMs: number) => ({
      floodgate: "floodgate",
      version,
      id: 1,
      limits: [JSON.stringify(["jobs", { algorithm: "fixed-window", limit: 100, window: "365d" }])],
      calls: [[untilMs, ["consume", 0, "key", 1], 1]],
    });
    listener(call(machineMs() - 1));
    expect(answers.pop()).toMatchObject({ list: [expect.stringContaining("too late")] });
    expect(served.store.size).toBe(0);
    listener(call(machineMs() + patienceMs));
    expect(served.store.size).toBe(1);
    port2.close();
    port1.close();
  });

  it("says that the other process has another version, whichever of them is older", async () => {
    const otherVersion = { code: "FLOODGATE_STORE_FAULT", message: expect.stringContaining("different versions") };
    const { port1, port2 } = channel();
    const served = serveClusterStore();
    closers.push(served.close);
    // The calls of an older worker.
    served.connect({
      on: (_, heard) => port1.on("message", (message) => heard({ ...message, version: undefined })),
      off: () => undefined,
      postMessage: (message) => port1.postMessage(message),
    });
    await expect(clusterStore({ port: port2 }).consume(limit, "key", 1, patienceMs)).rejects.toMatchObject(otherVersion);
    expect(served.store.size).toBe(0);
    // The results of an older server.
    const other = channel();
    other.port1.on("message", ({ id }) => other.port1.postMessage({ floodgate: "floodgate", results: id, list: [[1]] }));
    await expect(clusterStore({ port: other.port2 }).consume(limit, "key", 1, patienceMs)).rejects.toMatchObject(otherVersion);
  });

  it("fails only the equal requests that come after a failure of the server", async () => {
    let left = 2;
    const store = connected({
      clock: () => {
        if (left-- === 0) throw new Error("no time");
        return 1_789_948_800_000;
      },
    });
    closers.push(store.close);
    vi.useFakeTimers({ toFake: ["performance"] });
    closers.push(() => vi.useRealTimers());
    const asked = [1, 2, 3, 4].map(() => store.consume(limit, "key", 1, patienceMs));
    const made = await Promise.allSettled(asked);
    expect(made.map((it) => (it.status === "fulfilled" ? it.value.remaining : String(it.reason.message)))).toEqual([
      99,
      98,
      expect.stringContaining("no time"),
      expect.stringContaining("no time"),
    ]);
  });

  it("fails the calls that wait when the channel closes", async () => {
    const { port1, port2 } = channel();
    const pending = clusterStore({ port: port2 }).consume(limit, "key", 1, patienceMs);
    setImmediate(() => port1.close());
    await expect(pending).rejects.toMatchObject({ code: "FLOODGATE_STORE_FAULT" });
  });

  it("forgets a port that has closed, and a process that has ended", async () => {
    const { port1 } = channel();
    const child = fork(join(__dirname, "child.mjs"));
    const served = serveClusterStore();
    closers.push(served.close);
    for (const port of [port1, child] as const) {
      served.connect(port);
      expect(port.listenerCount("message")).toBe(1);
    }
    const closed = [once(port1, "close"), once(child, "disconnect")];
    port1.close();
    child.kill("SIGKILL");
    await Promise.all(closed);
    const off = [port1, child].map((port) => vi.spyOn(port, "off"));
    for (const port of [port1, child]) for (const event of ["message", "close", "disconnect"]) expect(port.listenerCount(event)).toBe(0);
    served.close();
    for (const each of off) expect(each).not.toHaveBeenCalled();
  });

  it("forgets the notes of receipts that have ended, also beside one that ends later", () => {
    let nowMs = 1_789_948_800_000;
    const marks = new Marks(() => nowMs);
    const note = (id: string, forMs: number) => {
      const charge: Charge = { cost: 1, atMs: nowMs, state: 1, receipt: { id, untilMs: nowMs + forMs } };
      marks.set(charge, redeemed);
      return charge;
    };
    const yearly = note("yearly", 31_536_000_000);
    for (let i = 0; i < 10_000; i++) {
      note(`brief-${i}`, 1000);
      nowMs += 10;
    }
    expect(marks.size).toBeLessThan(400);
    expect(marks.of(yearly)).toBe(redeemed);
  });

  it("leaves messages that are not its own alone", async () => {
    const { port1, port2 } = channel();
    const served = serveClusterStore();
    served.connect(port1);
    closers.push(served.close);
    for (const message of [null, "text", {}, { floodgate: "floodgate" }, { floodgate: 7, results: 1 }]) {
      port1.postMessage(message);
      port2.postMessage(message);
    }
    expect((await clusterStore({ port: port2 }).consume(limit, "key", 1, patienceMs)).remaining).toBe(99);
  });

  it("tells a failure of the server as a fault", async () => {
    const store = connected({
      clock: () => {
        throw new Error("no time");
      },
    });
    closers.push(store.close);
    await expect(store.consume(limit, "key", 1, patienceMs)).rejects.toMatchObject({
      code: "FLOODGATE_STORE_FAULT",
      message: expect.stringContaining("no time"),
    });
  });
});
