import { type Decision, FloodgateError, type Store } from "@floodgate/core";
import {
  type Blocked,
  type BlockKind,
  type Charge,
  type Check,
  checkOptions,
  Deadlines,
  type Inspection,
  type Limit,
  latestMs,
  msLeft,
  unblockedMs,
  type Waiter,
} from "@floodgate/core/store";
import {
  type Call,
  checkPort,
  type DecisionMessage,
  machineMs,
  ofRuns,
  otherVersion,
  type Port,
  post,
  type Results,
  type Runs,
  readDecision,
  storeName,
  version,
  writeLimit,
} from "./messages.js";

export interface ClusterStoreOptions {
  /** The name that was given to `serveClusterStore`. Default `"floodgate"`. */
  name?: string;
  /** Where the server listens: a `MessagePort`, or `parentPort`. Default: the process that started this one. */
  port?: Port;
}

/** The most calls in a message, so that the server stays free for other workers. */
const maxCalls = 256;

/** The timeout of direct calls. Limiters and middlewares say their own. */
const defaultTimeoutMs = 100;

/**
 * A store for several processes or threads of one machine, without a server: another process keeps the counts (`serveClusterStore`), and this
 * one asks it. Calls that wait at the same moment travel in one message.
 *
 *     app.use(rateLimit({ limit: 100, window: "1m", store: clusterStore() }));
 *
 * @throws FloodgateError if an option is invalid, or if this process has no process to ask.
 */
export function clusterStore(options: ClusterStoreOptions = {}): Store<"async"> {
  checkOptions("clusterStore", options, ["name", "port"], "clusterStore()");
  const name = storeName("clusterStore", options.name);
  const port = options.port === undefined ? parent() : checkPort("clusterStore", options.port);
  const ofPort = connections.get(port) ?? new Map<string, Connection>();
  connections.set(port, ofPort);
  const connection = ofPort.get(name) ?? new Connection(port, name);
  ofPort.set(name, connection);
  return new ClusterStore(connection, `cluster:${port === (process as object) ? process.ppid : process.pid}:${name}`);
}

function parent(): Port {
  if (process.env["pm_id"] !== undefined) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      "clusterStore: PM2 started this process, and PM2 cannot keep counts. Start one process by PM2 (exec_mode: fork) that forks its workers by node:cluster, or use redisStore.",
    );
  }
  if (process.send !== undefined) return process as Port;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    "clusterStore: this process was not forked, so it has no process to ask. Call it in a worker of node:cluster or in a forked process. In the primary write store: serveClusterStore().store. In a thread write clusterStore({ port }).",
  );
}

/** One connection for each port and name: stores over it are one store. */
const connections = new WeakMap<Port, Map<string, Connection>>();

type MakeCall = (limitNumber: (limit: Limit) => number) => Call;

/** A call that waits for its result. */
class Waiting implements Waiter {
  readonly call: MakeCall;
  /** What it takes. Only requests have it. */
  readonly request: Request | undefined;
  readonly timeoutMs: number;
  readonly deadlineMs: number;
  readonly latestMs: number;
  place = -1;
  settled = false;
  resolve!: (value: unknown) => void;
  fail!: (error: FloodgateError) => void;
  readonly #connection: Connection;
  readonly #read: (result: never) => unknown;

  constructor(connection: Connection, timeoutMs: number, call: MakeCall, read: (result: never) => unknown, request: Request | undefined) {
    const nowMs = performance.now();
    this.#connection = connection;
    this.call = call;
    this.#read = read;
    this.request = request;
    this.timeoutMs = timeoutMs;
    this.deadlineMs = unblockedMs(nowMs) + timeoutMs;
    this.latestMs = latestMs(timeoutMs, nowMs);
  }

  finish(result: unknown): void {
    try {
      this.resolve(this.#read(result as never));
    } catch (error) {
      this.fail(fault(`its answer cannot be read: ${error}`));
    }
  }

  expire(): void {
    this.#connection.expire(this);
  }
}

type Request = Pick<Check, "limit" | "key" | "cost">;

/** A call of a batch, and those that wait for it: several if they are equal requests. */
interface Group {
  readonly untilMs: number;
  readonly call: Call;
  readonly waiting: Waiting[];
}

/** Sends calls to the server, one batch at a time: calls that come meanwhile travel together in the next. */
class Connection {
  readonly #port: Port;
  readonly #name: string;
  readonly #deadlines = new Deadlines();
  #waiting: Waiting[] = [];
  #inFlight: readonly Group[] = [];
  #id = 0;
  #scheduled = false;
  #listens = false;
  #leaves = false;
  #hasAnswered = false;
  readonly #texts = new WeakMap<Limit, string>();

  constructor(port: Port, name: string) {
    this.#port = port;
    this.#name = name;
  }

  ask<T>(timeoutMs: number, call: MakeCall, read: (result: never) => T, request?: Request): Promise<T> {
    const waiting = new Waiting(this, timeoutMs, call, read, request);
    this.#deadlines.add(waiting);
    this.#waiting.push(waiting);
    this.#schedule();
    return new Promise<T>((resolve, reject) => {
      waiting.resolve = resolve as (value: unknown) => void;
      waiting.fail = reject;
    });
  }

  expire(waiting: Waiting): void {
    waiting.settled = true;
    waiting.fail(this.#timeout(waiting.timeoutMs));
    this.#rest();
  }

  #isBusy(): boolean {
    return this.#inFlight.some(({ waiting }) => waiting.some(({ settled }) => !settled));
  }

  #timeout(timeoutMs: number): FloodgateError {
    const advice = this.#hasAnswered
      ? "It was busy or has stopped."
      : `It has never answered. Call serveClusterStore() there before workers start, with the same name (${this.#name}).`;
    return new FloodgateError(
      "FLOODGATE_STORE_TIMEOUT",
      `clusterStore: the process that keeps the counts did not answer within ${timeoutMs} ms. ${advice}`,
    );
  }

  /** Sends after the current turn, so that all calls of one turn share a batch. */
  #schedule(): void {
    // A batch whose calls have all timed out blocks nobody: the server may have started after it was sent.
    if (this.#scheduled || this.#isBusy()) return;
    this.#scheduled = true;
    process.nextTick(() => {
      this.#scheduled = false;
      this.#send();
    });
  }

  #send(): void {
    const steadyMs = performance.now();
    const live = this.#waiting.filter((waiting) => !waiting.settled && msLeft(waiting, steadyMs) > 0);
    const batch = live.slice(0, maxCalls);
    this.#waiting = live.slice(maxCalls);
    this.#inFlight = [];
    if (batch.length === 0) return;
    const limits: string[] = [];
    const numbers = new Map<string, number>();
    const numberOf = (limit: Limit): number => {
      const text = this.#textOf(limit);
      const known = numbers.get(text);
      if (known !== undefined) return known;
      numbers.set(text, limits.length);
      return limits.push(text) - 1;
    };
    const nowMs = machineMs();
    const groups: Group[] = [];
    // The last request of each key. An equal one joins it, so the requests of a key stay in order.
    const last = new Map<string, Group>();
    for (const waiting of batch) {
      const untilMs = Math.floor(nowMs + msLeft(waiting, steadyMs));
      const { request } = waiting;
      const group = request && last.get(request.key);
      const same = group?.untilMs === untilMs ? group.waiting[0]?.request : undefined;
      if (group !== undefined && same !== undefined && same.limit === request?.limit && same.cost === request.cost) {
        group.waiting.push(waiting);
        continue;
      }
      const made: Group = { untilMs, call: waiting.call(numberOf), waiting: [waiting] };
      groups.push(made);
      if (request === undefined) last.clear();
      else last.set(request.key, made);
    }
    this.#inFlight = groups;
    this.#listen();
    const failed = (error: unknown): void => this.#failAll(batch, String(error));
    try {
      const calls = groups.map(({ untilMs, call, waiting }) => [untilMs, call, waiting.length] as const);
      post(this.#port, { floodgate: this.#name, version, id: ++this.#id, limits, calls }, failed);
    } catch (error) {
      failed(error);
    }
  }

  #textOf(limit: Limit): string {
    const known = this.#texts.get(limit);
    if (known !== undefined) return known;
    const text = writeLimit(limit);
    this.#texts.set(limit, text);
    return text;
  }

  /** Listens only while calls wait, so that the store keeps no process alive. */
  #listen(): void {
    if (this.#listens) return;
    this.#listens = true;
    for (const [event, listener] of this.#listeners) this.#port.on(event, listener);
  }

  #rest(): void {
    if (this.#isBusy()) return;
    if (this.#waiting.some(({ settled }) => !settled)) {
      this.#schedule();
      return;
    }
    if (!this.#leaves) setImmediate(this.#leave);
    this.#leaves = true;
  }

  /** Stops listening a turn after the last answer: on a busy process the next call is there by then. */
  readonly #leave = (): void => {
    this.#leaves = false;
    if (!this.#listens || this.#isBusy() || this.#waiting.length > 0) return;
    this.#listens = false;
    for (const [event, listener] of this.#listeners) this.#port.off(event, listener);
  };

  readonly #read = (message: unknown): void => {
    const { floodgate, version: theirs, results, list } = (message ?? {}) as Partial<Results>;
    if (floodgate !== this.#name || results !== this.#id || list === undefined) return;
    this.#hasAnswered = true;
    for (const [i, { waiting }] of this.#inFlight.entries()) {
      const result = theirs === version ? list[i] : otherVersion;
      // Of equal requests, those after a failure have no decision.
      const made = Array.isArray(result) && waiting.length > 1 ? ofRuns(result as Runs) : [result];
      const reason = Array.isArray(result) ? result.at(-1) : result;
      for (const [n, each] of waiting.entries()) {
        if (!this.#settles(each)) continue;
        if (typeof reason === "string" && (made.length <= n || made[n] === reason)) each.fail(fault(reason));
        else each.finish(made[n]);
      }
    }
    this.#rest();
  };

  readonly #gone = (): void => {
    this.#failAll(
      [...this.#inFlight.flatMap(({ waiting }) => waiting), ...this.#waiting.splice(0)],
      "the process that keeps the counts has closed its channel",
    );
  };

  readonly #listeners = [
    ["message", this.#read],
    ["disconnect", this.#gone],
    ["close", this.#gone],
  ] as const;

  #failAll(batch: readonly Waiting[], reason: string): void {
    for (const waiting of batch) if (this.#settles(waiting)) waiting.fail(fault(reason));
    this.#rest();
  }

  /** Whether a call still waits. From now on it does not. */
  #settles(waiting: Waiting): boolean {
    if (waiting.settled) return false;
    waiting.settled = true;
    return this.#deadlines.delete(waiting);
  }
}

function fault(reason: string): FloodgateError {
  return new FloodgateError("FLOODGATE_STORE_FAULT", `clusterStore: ${reason}.`);
}

class ClusterStore implements Store<"async"> {
  readonly mode = "async";
  readonly keepsDeadlines = true;
  readonly scope: object;
  readonly dataId: string;
  readonly #connection: Connection;

  constructor(connection: Connection, dataId: string) {
    this.#connection = connection;
    this.scope = connection;
    this.dataId = dataId;
  }

  consume(limit: Limit, key: string, cost: number, timeoutMs: number = defaultTimeoutMs): Promise<Decision> {
    return this.#connection.ask(
      timeoutMs,
      (number) => ["consume", number(limit), key, cost],
      (result: DecisionMessage) => readDecision(limit, cost, result),
      { limit, key, cost },
    );
  }

  consumeAll(checks: readonly Check[], timeoutMs: number = defaultTimeoutMs): Promise<Decision[]> {
    return this.#connection.ask(
      timeoutMs,
      (number) => [
        "consumeAll",
        checks.map(({ limit, key, cost, shadow, dryRun }) => [number(limit), key, cost, (shadow ? 1 : 0) + (dryRun ? 2 : 0)]),
      ],
      (results: DecisionMessage[]) => checks.map(({ limit, cost }, i) => readDecision(limit, cost, results[i] as DecisionMessage)),
    );
  }

  peek(limit: Limit, key: string, timeoutMs: number = defaultTimeoutMs): Promise<Decision> {
    return this.#connection.ask(
      timeoutMs,
      (number) => ["peek", number(limit), key],
      (result: DecisionMessage) => readDecision(limit, 1, result),
    );
  }

  renew(limit: Limit, key: string, charge: Charge, timeoutMs: number = defaultTimeoutMs): Promise<Decision | undefined> {
    const { cost, atMs, state, receipt } = charge;
    return this.#connection.ask(
      timeoutMs,
      (number) => ["renew", number(limit), key, { cost, atMs, state, receipt }],
      (result: DecisionMessage | null) => (result === null ? undefined : readDecision(limit, cost, result)),
    );
  }

  settle(limit: Limit, key: string, charge: Charge, cost: number, timeoutMs: number = defaultTimeoutMs): Promise<number> {
    const { cost: charged, atMs, state, heldUntilMs, receipt } = charge;
    return this.#connection.ask(
      timeoutMs,
      (number) => ["settle", number(limit), key, { cost: charged, atMs, state, heldUntilMs, receipt }, cost],
      (units: number) => units,
    );
  }

  reset(limit: Limit, key: string, timeoutMs: number = defaultTimeoutMs): Promise<void> {
    return this.#connection.ask(timeoutMs, (number) => ["reset", number(limit), key], nothing);
  }

  block(name: string, key: string, forMs: number, kind: BlockKind, timeoutMs: number = defaultTimeoutMs): Promise<Blocked> {
    return this.#connection.ask(
      timeoutMs,
      () => ["block", name, key, forMs, kind],
      (blocked: Blocked) => blocked,
    );
  }

  unblock(name: string, key: string, timeoutMs: number = defaultTimeoutMs): Promise<void> {
    return this.#connection.ask(timeoutMs, () => ["unblock", name, key], nothing);
  }

  keyState(limit: Limit, key: string, timeoutMs: number = defaultTimeoutMs): Promise<Inspection> {
    return this.#connection.ask(
      timeoutMs,
      (number) => ["keyState", number(limit), key],
      ({ atMs, state, block, ban, decision }: Omit<Inspection, "decision"> & { readonly decision: DecisionMessage }) => ({
        atMs,
        state,
        block,
        ban,
        decision: readDecision(limit, 1, decision),
      }),
    );
  }
}

const nothing = (): void => undefined;
