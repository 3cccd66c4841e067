import type { Decision, Policy } from "@floodgate/core";
import { type AlgorithmDefinition, algorithms, toPolicy } from "@floodgate/core/rules";
import {
  asCharge,
  blockedDecision,
  blockOf,
  type Charge,
  createLimit,
  decision,
  heldPolicy,
  inState,
  invalidOption,
  type KeyBlock,
  type Limit,
  wrongOption,
} from "@floodgate/core/store";

/** A process, thread or `MessagePort` that messages are sent to: `process`, a child process, a worker of `node:cluster`, a `Worker`. */
export interface Port {
  on(event: string, listener: (message: unknown) => void): unknown;
  off(event: string, listener: (message: unknown) => void): unknown;
  send?(message: never): unknown;
  postMessage?(message: never): void;
}

/** The number of a limit in `Batch.limits`, then the key, the cost, and 1 for a shadow check, 2 for a dry run, or 3 for both. */
export type CheckMessage = readonly [limit: number, key: string, cost: number, kind: number];

/** One call of the store. JSON keeps all of it, because `process.send` writes JSON by default. */
export type Call =
  | readonly ["consume", limit: number, key: string, cost: number]
  | readonly ["peek" | "reset" | "keyState", limit: number, key: string]
  | readonly ["consumeAll", checks: readonly CheckMessage[]]
  | readonly ["renew", limit: number, key: string, charge: Charge]
  | readonly ["settle", limit: number, key: string, charge: Charge, cost: number]
  | readonly ["block", name: string, key: string, forMs: number, kind: "block" | "ban"]
  | readonly ["unblock", name: string, key: string];

/** Calls that travel together. */
export interface Batch {
  /** The name of the store. It tells these messages from those of the app and of other stores. */
  readonly floodgate: string;
  /** The `version` of the sender. */
  readonly version: number;
  readonly id: number;
  /** As `writeLimit` writes them. */
  readonly limits: readonly string[];
  /** Each with the time of the machine's steady clock, in whole milliseconds, after which it must not be carried out, and how often: only `consume` more than once. */
  readonly calls: readonly (readonly [untilMs: number, call: Call, times: number])[];
}

/** The results of a batch, in order. A text says why a call failed. Equal `consume` calls have `Runs`. */
export interface Results {
  readonly floodgate: string;
  readonly version: number;
  readonly results: number;
  readonly list: readonly unknown[];
}

/** A decision. If the key is blocked, `block` and what follows say so, and the rest is what the limit alone decides. -1 is Infinity or undefined. */
export type DecisionMessage = readonly [
  allowed: number,
  remaining: number,
  retryAfterMs: number,
  resetAfterMs: number,
  delayMs: number,
  atMs: number,
  state: number,
  heldUntilMs?: number,
  block?: number,
  untilMs?: number,
  nowMs?: number,
];

/** Decisions of equal requests: the first, how many there are, and what each number of the next has more than the one before. */
export type Run = [first: DecisionMessage, times: number, step: readonly number[]];

/** Decisions of equal requests, and why the next of them failed, if one did. */
export type Runs = readonly (Run | string)[];

/** Counts up with each change of these messages. */
export const version = 2;

/** Why a batch of another `version` fails. During a deploy, workers may be of another version than the process that started them. */
export const otherVersion =
  "this process and the one that keeps the counts have different versions of @floodgate/store-cluster. Restart both";

const blockKinds = ["block", "ban"] as const;

/** Adds a decision to the last run if its numbers go on as those of the run do, else begins a run. */
export function addToRuns(runs: Run[], next: DecisionMessage): void {
  const run = runs.at(-1);
  if (run !== undefined && run[0].length === next.length) {
    const [first, times, step] = run;
    if (times === 1) run[2] = next.map((number, i) => (number as number) - (first[i] as number));
    if (times === 1 || goesOn(first, times, step, next)) {
      run[1]++;
      return;
    }
  }
  runs.push([next, 1, []]);
}

function goesOn(first: DecisionMessage, times: number, step: readonly number[], next: DecisionMessage): boolean {
  for (let i = 0; i < next.length; i++) if (next[i] !== (first[i] as number) + times * (step[i] as number)) return false;
  return true;
}

/** The decisions of runs, in order. */
export function ofRuns(runs: Runs): DecisionMessage[] {
  const all: DecisionMessage[] = [];
  for (const run of runs) {
    if (typeof run === "string") break;
    const [first, times, step] = run;
    all.push(first);
    for (let n = 1; n < times; n++) {
      const next = first.slice() as number[];
      for (let i = 0; i < next.length; i++) next[i] = (first[i] as number) + n * (step[i] as number);
      all.push(next as never);
    }
  }
  return all;
}

const limitTexts = new WeakMap<Limit, string>();

/** The name of a limit, the options of its policy, and how long units are held at most, and by this request. */
export function writeLimit(limit: Limit): string {
  const known = limitTexts.get(limit);
  if (known !== undefined) return known;
  const { name, policy, holdMs } = limit;
  const { optionsOf } = algorithms[policy.algorithm] as AlgorithmDefinition<Policy, object>;
  const longestMs = policy.algorithm === "concurrency" ? undefined : policy.holdMs;
  const text = JSON.stringify([name, { algorithm: policy.algorithm, ...optionsOf(policy) }, longestMs, holdMs]);
  limitTexts.set(limit, text);
  return text;
}

export function readLimit(text: string): Limit {
  const [name, options, longestMs, holdMs] = JSON.parse(text);
  const limit = createLimit(name, heldPolicy("clusterStore", toPolicy("clusterStore", options), longestMs ?? undefined));
  return typeof holdMs === "number" ? { ...limit, holdMs } : limit;
}

export function writeDecision(made: Decision): DecisionMessage {
  const block = blockOf(made);
  const { allowed, remaining, retryAfterMs, resetAfterMs, delayMs, atMs } = block?.unblocked ?? made;
  const { state = -1, heldUntilMs } = asCharge(made);
  const retryMs = retryAfterMs === Number.POSITIVE_INFINITY ? -1 : retryAfterMs;
  const { blocked } = made;
  if (block !== undefined && blocked !== undefined) {
    const kind = blockKinds.indexOf(blocked.kind);
    return [allowed ? 1 : 0, remaining, retryMs, resetAfterMs, delayMs, atMs, state, -1, kind, blocked.untilMs, block.nowMs];
  }
  if (heldUntilMs !== undefined) return [allowed ? 1 : 0, remaining, retryMs, resetAfterMs, delayMs, atMs, state, heldUntilMs];
  return [allowed ? 1 : 0, remaining, retryMs, resetAfterMs, delayMs, atMs, state];
}

export function readDecision(limit: Limit, cost: number, message: DecisionMessage): Decision {
  const [allowed, remaining, retryMs, resetAfterMs, delayMs, atMs, state, held = -1, block, untilMs = 0, nowMs = 0] = message;
  const retryAfterMs = retryMs === -1 ? Number.POSITIVE_INFINITY : retryMs;
  const heldUntilMs = held === -1 ? undefined : held;
  const made = decision(limit, cost, { allowed: allowed === 1, remaining, retryAfterMs, resetAfterMs, delayMs, atMs, heldUntilMs });
  if (block !== undefined) return blockedDecision(made, { kind: blockKinds[block] as KeyBlock["kind"], untilMs }, nowMs);
  return state === -1 ? made : inState(made, state);
}

/** Sends a message. `onError` is called if the other side has gone. */
export function post(port: Port, message: Batch | Results, onError: (error: Error) => void): void {
  if (port.postMessage !== undefined) port.postMessage(message as never);
  // Without a callback, Node would report a closed channel as an uncaught error.
  else (port.send as (...args: unknown[]) => unknown)(message, undefined, undefined, (error: Error | null) => error && onError(error));
}

/** What the clock of `machineMs` is ahead of `performance.now()`. */
const aheadMs = Number(process.hrtime.bigint() / 1000n) / 1000 - performance.now();

/** Milliseconds by a clock that never steps, and that all processes of the machine share. */
export function machineMs(steadyMs: number = performance.now()): number {
  return aheadMs + steadyMs;
}

/** Checks the option `name`. */
export function storeName(where: string, name: unknown = "floodgate"): string {
  if (typeof name === "string" && name !== "") return name;
  throw wrongOption(where, "name", "a text that is not empty", name, 'name: "api"');
}

/** @throws FloodgateError unless messages can be sent to it. */
export function checkPort(where: string, port: unknown): Port {
  const { on, off, send, postMessage } = (port ?? {}) as Partial<Record<keyof Port, unknown>>;
  const isPort = [on, off, send ?? postMessage].every((method) => typeof method === "function");
  if (isPort) return port as Port;
  throw invalidOption(
    `${where}: a port must be a child process, a worker or a MessagePort of node:worker_threads, but was given ${port === null ? "null" : `a value of the type ${typeof port}`}. Write ${where === "connect" ? "connect(child)" : "clusterStore({ port: parentPort })"}.`,
    ["port"],
  );
}
