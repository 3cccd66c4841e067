import { type Decision, FloodgateError, type Store } from "@floodgate/core";
import {
  addWaiter,
  afterTurn,
  type Blocked,
  type BlockKind,
  type Charge,
  type Check,
  checkOptions,
  type Inspection,
  invalidOption,
  type Limit,
  msLeft,
  unblockedMs,
  Waiter,
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

/** How long it listens without need. */
const idleMs = 10;

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
    throw invalidOption(
      "clusterStore: PM2 started this process, and PM2 cannot keep counts. Start one process by PM2 (exec_mode: fork) that forks its workers by node:cluster, or use redisStore.",
    );
  }
  if (process.send !== undefined) return process as Port;
  throw invalidOption(
    "clusterStore: this process was not forked, so it has no process to ask. Call it in a worker of node:cluster or in a forked process. In the primary write store: serveClusterStore().store. In a thread write clusterStore({ port }).",
  );
}

/** One connection for each port and name: stores over it are one store. */
const connections = new WeakMap<Port, Map<string, Connection>>();

type MakeCall = (limitNumber: (limit: Limit) => number) => Call;

/** Returns the result of the nth of equal requests. */
type Read = (n: number) => unknown;

/** A call, and how many wait for its result: several if they are equal requests. They share the deadline of the first. */
class Group extends Waiter<Read> {
  readonly call: MakeCall;
  readonly timeoutMs: number;
  /** What it takes. Only requests have it. */
  readonly request: Check | undefined;
  /** How many wait. */
  times = 0;
  readonly #connection: Connection;
  readonly #read: (result: never) => unknown;

  constructor(connection: Connection, timeoutMs: number, call: MakeCall, read: (result: never) => unknown, request: Check | undefined) {
    super(timeoutMs);
    this.#connection = connection;
    this.call = call;
    this.#read = read;
    this.request = request;
    this.timeoutMs = timeoutMs;
  }

  /** Whether a request may join: it is equal, and made in the same millisecond. */
  takes(limit: Limit, cost: number, timeoutMs: number): boolean {
    const { request } = this;
    const isEqual = request?.limit === limit && request.cost === cost && this.timeoutMs === timeoutMs;
    return isEqual && !this.settled && this.times < maxCalls && unblockedMs() + timeoutMs < this.deadlineMs + 1;
  }

  /** All share one promise: one of each request's own, with its functions, would cost more. */
  join<T>(): Promise<T> {
    const n = this.times++;
    return this.answer.then((read) => read(n) as T);
  }

  finishBy(result: unknown): void {
    const made = Array.isArray(result) && this.times > 1 ? ofRuns(result as Runs) : [result];
    // Of equal requests, those after a failure have no decision.
    const reason = Array.isArray(result) ? result.at(-1) : result;
    this.finish((n) => {
      if (typeof reason === "string" && (made.length <= n || made[n] === reason)) throw fault(reason);
      try {
        return this.#read(made[n] as never);
      } catch (error) {
        throw fault(`its answer cannot be read: ${error}`);
      }
    });
  }

  expire(): void {
    this.#connection.expire(this);
  }
}

/** Sends calls to the server, one batch at a time: calls that come meanwhile travel together in the next. */
class Connection {
  readonly #port: Port;
  readonly #name: string;
  #waiting: Group[] = [];
  // Made anew for each batch: a Map that is cleared keeps what it had until a full garbage collection.
  /** The last request of each key that waits. An equal one joins it, so the requests of a key stay in order. */
  #last = new Map<string, Group>();
  #inFlight: readonly Group[] = [];
  #id = 0;
  #scheduled = false;
  #listens = false;
  #leaves = false;
  #hasAnswered = false;

  constructor(port: Port, name: string) {
    this.#port = port;
    this.#name = name;
  }

  ask<T>(timeoutMs: number, call: MakeCall, read: (result: never) => T, request?: Check): Promise<T> {
    const group = new Group(this, timeoutMs, call, read, request);
    addWaiter(group);
    this.#waiting.push(group);
    if (request === undefined) this.#last = new Map();
    else this.#last.set(request.key, group);
    this.#schedule();
    return group.join();
  }

  consume(limit: Limit, key: string, cost: number, timeoutMs: number): Promise<Decision> {
    const last = this.#last.get(key);
    if (last?.takes(limit, cost, timeoutMs)) return last.join();
    return this.ask(timeoutMs, (number) => ["consume", number(limit), key, cost], decisionOf(limit, cost), { limit, key, cost });
  }

  expire(group: Group): void {
    this.#failAll([group], this.#timeout(group.timeoutMs));
  }

  #isBusy(): boolean {
    return this.#inFlight.some(({ settled }) => !settled);
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
    afterTurn(() => {
      this.#scheduled = false;
      this.#send();
    });
  }

  #send(): void {
    const steadyMs = performance.now();
    const live = this.#waiting.filter((group) => !group.settled && msLeft(group, steadyMs) > 0);
    let sent = 0;
    for (let times = 0; sent < live.length; sent++) {
      times += (live[sent] as Group).times;
      if (times > maxCalls) break;
    }
    this.#waiting = live.slice(sent);
    this.#last = new Map();
    const groups = live.slice(0, sent);
    this.#inFlight = groups;
    if (sent === 0) return;
    const limits = new Map<string, number>();
    const numberOf = (limit: Limit): number => {
      const text = writeLimit(limit);
      if (!limits.has(text)) limits.set(text, limits.size);
      return limits.get(text) as number;
    };
    const nowMs = machineMs(steadyMs);
    const calls = groups.map((group) => [Math.floor(nowMs + msLeft(group, steadyMs)), group.call(numberOf), group.times] as const);
    this.#listen();
    const failed = (error: unknown): void => this.#failAll(groups, fault(String(error)));
    try {
      post(this.#port, { floodgate: this.#name, version, id: ++this.#id, limits: [...limits.keys()], calls }, failed);
    } catch (error) {
      failed(error);
    }
  }

  /** Listens only while calls wait, so that the store keeps no process alive. */
  #listen(): void {
    if (this.#listens) return;
    this.#listens = true;
    for (const [event, listener] of this.#listeners) this.#port.on(event, listener);
  }

  #rest(): void {
    if (this.#isBusy()) return;
    // A tick comes before the microtasks in which requests that were just decided make their next calls. Those join this batch.
    // Tests fake `queueMicrotask`, but not promises.
    if (this.#waiting.some(({ settled }) => !settled)) Promise.resolve().then(() => this.#schedule());
    else if (!this.#leaves) {
      this.#leaves = true;
      setTimeout(this.#leave, idleMs);
    }
  }

  /** Stops listening some time after an answer. Sooner, a busy process would poll once more after each answer. */
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
    for (const [i, group] of this.#inFlight.entries()) {
      if (!group.settled) group.finishBy(theirs === version ? list[i] : otherVersion);
    }
    this.#rest();
  };

  readonly #gone = (): void => {
    this.#failAll([...this.#inFlight, ...this.#waiting.splice(0)], fault("the process that keeps the counts has closed its channel"));
  };

  readonly #listeners = [
    ["message", this.#read],
    ["disconnect", this.#gone],
    ["close", this.#gone],
  ] as const;

  #failAll(groups: readonly Group[], error: FloodgateError): void {
    for (const group of groups) group.fail(error);
    this.#rest();
  }
}

function fault(reason: string): FloodgateError {
  return new FloodgateError("FLOODGATE_STORE_FAULT", `clusterStore: ${reason}.`);
}

/** Reads the answer of a call that decides. */
function decisionOf(limit: Limit, cost: number): (result: DecisionMessage) => Decision {
  return (result) => readDecision(limit, cost, result);
}

/** A charge without what its record has besides. */
function plain({ cost, atMs, state, heldUntilMs, receipt }: Charge): Charge {
  return { cost, atMs, state, heldUntilMs, receipt };
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
    return this.#connection.consume(limit, key, cost, timeoutMs);
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
    return this.#connection.ask(timeoutMs, (number) => ["peek", number(limit), key], decisionOf(limit, 1));
  }

  renew(limit: Limit, key: string, charge: Charge, timeoutMs: number = defaultTimeoutMs): Promise<Decision | undefined> {
    return this.#connection.ask(
      timeoutMs,
      (number) => ["renew", number(limit), key, plain(charge)],
      (result: DecisionMessage | null) => (result === null ? undefined : readDecision(limit, charge.cost, result)),
    );
  }

  settle(limit: Limit, key: string, charge: Charge, cost: number, timeoutMs: number = defaultTimeoutMs): Promise<number> {
    return this.#connection.ask(
      timeoutMs,
      (number) => ["settle", number(limit), key, plain(charge), cost],
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
      ({ decision, ...seen }: Omit<Inspection, "decision"> & { readonly decision: DecisionMessage }) => ({
        ...seen,
        decision: readDecision(limit, 1, decision),
      }),
    );
  }
}

const nothing = (): void => undefined;
