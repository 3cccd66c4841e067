import cluster, { type Worker } from "node:cluster";
import { type EventListener, FloodgateError } from "@floodgate/core";
import { asCharge, type Charge, type Check, type Clock, checkOptions, type Limit, wholeMsClock } from "@floodgate/core/store";
import { type MemoryStore, memoryStore } from "@floodgate/store-memory";
import { Marks, redeemed } from "./marks.js";
import {
  addToRuns,
  type Batch,
  type Call,
  checkPort,
  type DecisionMessage,
  machineMs,
  otherVersion,
  type Port,
  post,
  type Run,
  type Runs,
  readLimit,
  storeName,
  version,
  writeDecision,
} from "./messages.js";

export interface ServeOptions {
  /** Tells several stores apart, if one process serves them. Give `clusterStore` the same name. Default `"floodgate"`. */
  name?: string;
  /** The most keys in memory: see `memoryStore`. Default 100,000. */
  maxKeys?: number;
  /** Returns milliseconds since the epoch. Default `Date.now`. */
  clock?: Clock;
  /** Called for each counted key that was evicted: see `memoryStore`. */
  onEvent?: EventListener;
}

/** A store that other processes and threads use. */
export interface ServedStore {
  /** The counts, for limiters of this process. */
  readonly store: MemoryStore;
  /** Serves a child process or a thread as well. Workers of `node:cluster` are served without it. */
  connect(port: Port): void;
  /** Stops serving, and frees the name. The counts stay. */
  close(): void;
}

/** The names that this process serves. Workers of `node:cluster` ask all stores of the process, so two of one name would both answer. */
const namesServed = new Set<string>();

/** The most limits that the server remembers by their text. A limit that it has forgotten is made again. */
const maxLimits = 10_000;

/**
 * Keeps the counts for all workers of this process, in memory. Call it in the primary before workers start:
 *
 *     if (cluster.isPrimary) {
 *       serveClusterStore();
 *       for (let i = 0; i < 4; i++) cluster.fork();
 *     } else {
 *       app.use(rateLimit({ limit: 100, window: "1m", store: clusterStore() }));
 *     }
 *
 * @throws FloodgateError if an option is invalid, or if this process already serves a store of the name.
 */
export function serveClusterStore(options: ServeOptions = {}): ServedStore {
  checkOptions("serveClusterStore", options, ["name", "maxKeys", "clock", "onEvent"], "serveClusterStore({ maxKeys: 100_000 })");
  const { name: givenName, ...rest } = options;
  const name = storeName("serveClusterStore", givenName);
  if (namesServed.has(name)) {
    throw new FloodgateError(
      "FLOODGATE_NAME_TAKEN",
      `serveClusterStore: this process already serves a store with the name "${name}". Call serveClusterStore once and use what it returned, or give the second store another name, here and in its workers: serveClusterStore({ name: "second" }) and clusterStore({ name: "second" }).`,
      { at: ["name"] },
    );
  }
  const store = memoryStore(rest);
  const answer = answersOf(name, store, wholeMsClock("serveClusterStore", options.clock));

  const ofWorker = (worker: Worker, message: unknown): void => answer(worker as unknown as Port, message);
  cluster.on("message", ofWorker);
  namesServed.add(name);
  const leavers = new Set<() => void>([() => cluster.off("message", ofWorker), () => namesServed.delete(name)]);
  return {
    store,
    connect(given) {
      const port = checkPort("connect", given);
      // After these events no message comes. A process that has exited may have sent some that were not read yet.
      const ends = port.postMessage === undefined ? ["disconnect"] : ["close", "exit"];
      const listener = (message: unknown): void => answer(port, message);
      const leave = (): void => {
        for (const event of ends) port.off(event, leave);
        port.off("message", listener);
        leavers.delete(leave);
      };
      for (const event of ends) port.on(event, leave);
      port.on("message", listener);
      leavers.add(leave);
    },
    close() {
      for (const leave of leavers) leave();
      // Another store may have the name by the next call.
      leavers.clear();
    },
  };
}

/** Answers the batches that are for this store. */
function answersOf(name: string, store: MemoryStore, clock: Clock): (port: Port, message: unknown) => void {
  const limits = new Map<string, Limit>();
  const limitOf = (text: string): Limit => {
    const known = limits.get(text);
    if (known !== undefined) return known;
    if (limits.size === maxLimits) limits.clear();
    const limit = readLimit(text);
    limits.set(text, limit);
    return limit;
  };
  const marks = new Marks(clock);

  function renew(limit: Limit, key: string, sent: Charge): DecisionMessage | null {
    const charge = marks.of(sent);
    if (charge === redeemed) return null;
    const made = store.renew(limit, key, charge);
    if (made?.allowed) marks.set(sent, { ...asCharge(made), receipt: sent.receipt }, made.resetAfterMs);
    return made === undefined ? null : writeDecision(made);
  }

  function consumeEqual(limit: Limit, key: string, cost: number, times: number): Runs {
    const runs: Run[] = [];
    try {
      for (let i = 0; i < times; i++) addToRuns(runs, writeDecision(store.consume(limit, key, cost)));
    } catch (error) {
      return [...runs, String(error)];
    }
    return runs;
  }

  function carryOut(call: Call, times: number, of: (limit: number) => Limit): unknown {
    switch (call[0]) {
      case "consume":
        return times > 1 ? consumeEqual(of(call[1]), call[2], call[3], times) : writeDecision(store.consume(of(call[1]), call[2], call[3]));
      case "consumeAll":
        return store
          .consumeAll(
            call[1].map(([limit, key, cost, kind]): Check => ({ limit: of(limit), key, cost, shadow: kind % 2 === 1, dryRun: kind > 1 })),
          )
          .map(writeDecision);
      case "peek":
        return writeDecision(store.peek(of(call[1]), call[2]));
      case "renew":
        return renew(of(call[1]), call[2], call[3]);
      case "settle": {
        const [, limit, key, sent, cost] = call;
        const charge = marks.of(sent);
        marks.set(sent, redeemed);
        return charge === redeemed ? 0 : store.settle(of(limit), key, charge, cost);
      }
      case "keyState": {
        const inspection = store.keyState(of(call[1]), call[2]);
        return { ...inspection, decision: writeDecision(inspection.decision) };
      }
      case "reset":
        return store.reset(of(call[1]), call[2]);
      case "block":
        return store.block(call[1], call[2], call[3], call[4]);
      case "unblock":
        return store.unblock(call[1], call[2]);
    }
  }

  return (port, message) => {
    const { floodgate, version: theirs, id, limits: texts, calls } = (message ?? {}) as Partial<Batch>;
    if (floodgate !== name || id === undefined || texts === undefined || calls === undefined) return;
    const nowMs = machineMs();
    const of = (limit: number): Limit => limitOf(texts[limit] as string);
    const list = calls.map(([untilMs, call, times]) => {
      if (theirs !== version) return otherVersion;
      if (nowMs > untilMs) return "the call arrived too late, and was not carried out";
      try {
        return carryOut(call, times, of);
      } catch (error) {
        return String(error);
      }
    });
    // A worker that has ended needs no answer.
    post(port, { floodgate, version, results: id, list }, () => undefined);
  };
}
