import {
  blockCells,
  blockedDecision,
  type Cells,
  type Decision,
  decision,
  inState,
  type KeyBlock,
  type Limit,
} from "@floodgate/core/store";
import type { KnownLimit } from "./limits.js";

/** A decision, and the state that rejected it. */
export interface DecisionReply {
  readonly decision: Decision;
  /** What the limit alone says. The same decision, unless the key is blocked. */
  readonly unblocked: Decision;
  readonly blocked: KeyBlock | undefined;
  readonly state: Cells | undefined;
}

/** The reply does not match the request. None of it can be trusted. */
export class MalformedReply extends Error {}

/** The most entries of a log in a reply: the eight oldest and up to four others (see sliding-window-log.lua). */
const maxEntries = 12;
/** The most entries of an inspected log: its newest thousand too. */
const maxInspected = maxEntries + 1000;
/** The most entries of held units, which an inspection reads whole. */
const maxHeld = 10_000;

/**
 * Reads the answers of a batch one after the other. lua/batch.lua describes the layout. Every field is checked, because a faulty proxy,
 * another version of the script or an attacker may have answered. A field that is not a number, or that leaves open where the next answer
 * begins, throws a `MalformedReply`. A number out of its range fails only the step at hand.
 */
export class Reply {
  /** The server's time when the run began. */
  readonly serverMs: number;
  readonly #serverUs: number;
  /** The time that the batch was decided by. */
  readonly nowMs: number;
  /** By this process's monotonic clock. */
  readonly sentMs: number;
  readonly receivedMs: number;
  readonly #list: readonly unknown[];
  #at = 1;
  #problem: string | undefined;

  /** @param clockMs the injected clock's time in the batch, if any; else the server's time was used. */
  constructor(list: unknown, clockMs: number | undefined, sentMs: number, receivedMs: number) {
    if (!Array.isArray(list)) throw new MalformedReply("its reply is malformed: it is not a list");
    this.#list = list;
    this.#serverUs = wholeOf(list[0]);
    this.serverMs = Math.floor(this.#serverUs / 1000);
    if (!isWithin(this.#serverUs, largest)) throw new MalformedReply(expected("the server's time", 0, list[0]));
    this.nowMs = clockMs ?? this.serverMs;
    this.sentMs = sentMs;
    this.receivedMs = receivedMs;
  }

  /** Whether the batch arrived too late and did nothing. */
  get isLate(): boolean {
    return this.#list.length === 1;
  }

  /** Call it once all answers have been read. @throws MalformedReply if anything is left over. */
  end(): void {
    if (this.#at !== this.#list.length) throw new MalformedReply(expected("the end", this.#at, this.#list[this.#at]));
  }

  /** The error message if the next step failed. */
  stepError(): string | undefined {
    const next = this.#list[this.#at];
    if (typeof next === "number") return undefined;
    // Clients can be configured to return numbers as strings, and strings as bytes.
    const isText = typeof next === "string" || next instanceof Uint8Array;
    if (!isText || !Number.isNaN(wholeOf(next))) return undefined;
    this.#at++;
    return String(next);
  }

  /** Returns and clears the problem of the answer that was read last, if any. Call it after each answer. */
  takeProblem(): string | undefined {
    const problem = this.#problem;
    this.#problem = undefined;
    return problem;
  }

  /** Records that a number of the current step is out of range. */
  outOfRange(what: string, found: number): void {
    this.#problem ??= expected(what, this.#at - 1, found);
  }

  /** The next number: whole, and expected from `least` to `most`. */
  number(what: string, least: number, most: number): number {
    const next = this.#next(what);
    if (next < least || next > most) this.outOfRange(what, next);
    return next;
  }

  /** The next number, which determines the layout of the rest. @throws MalformedReply if it is not from `least` to `most`. */
  discriminant(what: string, least: number, most: number): number {
    const next = this.#next(what);
    if (next >= least && next <= most) return next;
    throw new MalformedReply(expected(what, this.#at - 1, next));
  }

  #next(what: string): number {
    const at = this.#at++;
    const next = wholeOf(this.#list[at]);
    if (Number.isNaN(next)) throw new MalformedReply(expected(what, at, this.#list[at]));
    return next;
  }

  /** The decision of a request that passes without a wait; undefined for any other, which `decision` reads. */
  passed({ limit }: KnownLimit, cost: number, key: number): Decision | undefined {
    const list = this.#list;
    const at = this.#at;
    const remaining = list[at];
    const resetMs = list[at + 1];
    const { quota } = limit.policy;
    // Every other form, and every number that is out of its range, is judged by `decision`.
    if (!isWithin(remaining, quota) || !isWithin(resetMs, largest)) return undefined;
    this.#at = at + 2;
    const atMs = this.nowMs;
    const made = decision(limit, cost, { allowed: true, remaining, retryAfterMs: 0, resetAfterMs: resetMs, delayMs: 0, atMs });
    return inState(made, this.#serverUs + key);
  }

  /**
   * @param stateAlways whether a state follows allowed decisions too, as in a rejected consumeAll.
   * @param key the index of the check's key in the run.
   */
  decision(known: KnownLimit, cost: number, stateAlways: boolean, key: number): DecisionReply {
    const read = this.#decision(known, cost, stateAlways);
    // The check's instant identifies the state that it charged: see lua/prelude.lua.
    inState(read.decision, this.#serverUs + key);
    return read;
  }

  /**
   * The decisions of so many equal requests in a row. The script says what the first one finds, and how many it charged. Core's algorithm
   * decides the same on the same state.
   */
  equals(known: KnownLimit, cost: number, count: number, key: number): DecisionReply[] {
    const { limit } = known;
    const found = this.#decision(known, cost, true, true);
    const charged = this.discriminant("how many requests were charged", 0, count);
    if (found.blocked !== undefined) return new Array(count).fill(found);
    const state = found.state as Cells;
    if (!explains(state, found.decision, limit, this.nowMs)) this.outOfRange("a state with this decision", state[0] as number);
    let allowed = 0;
    const decided = Array.from({ length: count }, (): DecisionReply => {
      const made = limit.algorithm.decide(limit, state, 0, this.nowMs, cost, true);
      if (made.allowed) allowed++;
      return ofUnblocked(inState(made, this.#serverUs + key), undefined);
    });
    if (allowed !== charged) this.outOfRange("how many requests were charged", charged);
    // One rejection is enough for the deny cache.
    const last = decided[count - 1] as DecisionReply;
    if (!last.decision.allowed) decided[count - 1] = { ...last, state };
    return decided;
  }

  #decision(known: KnownLimit, cost: number, stateAlways: boolean, isWhole = false): DecisionReply {
    const first = this.discriminant("what remains", -4, isWhole ? -1 : largest);
    if (first > -3) return this.#unblocked(known, cost, stateAlways, first, isWhole);
    const untilMs = this.nowMs + this.number("the time that a key is blocked", 1, largest);
    const blocked: KeyBlock = { kind: first === -4 ? "ban" : "block", untilMs };
    const { unblocked, state } = this.#unblocked(known, cost, true, this.discriminant("what remains", -2, -1), isWhole);
    return { decision: blockedDecision(unblocked, blocked, this.nowMs), unblocked, blocked, state };
  }

  #unblocked(known: KnownLimit, cost: number, stateAlways: boolean, first: number, isWhole: boolean): DecisionReply {
    const { limit } = known;
    const { quota, spanMs } = limit.policy;
    if (first >= 0) {
      if (first > quota) this.outOfRange("what remains", first);
      const resetAfterMs = this.number("the wait until the reset", 0, largest);
      const made = decision(limit, cost, { allowed: true, remaining: first, retryAfterMs: 0, resetAfterMs, delayMs: 0, atMs: this.nowMs });
      return ofUnblocked(made, undefined);
    }
    const allowed = first === -1;
    const remaining = this.number("what remains", 0, quota);
    const retryMs = this.number("the wait until a retry", -1, largest);
    // Rejections have a wait, allowed requests have none.
    if (allowed ? cost <= remaining && retryMs !== 0 : retryMs === 0) this.outOfRange("the wait until a retry", retryMs);
    const retryAfterMs = retryMs < 0 ? Number.POSITIVE_INFINITY : retryMs;
    const resetAfterMs = this.number("the wait until the reset", 0, largest);
    const { holdMs = 0 } = limit.policy;
    const waitMs = this.number("the delay", 0, !allowed ? 0 : limit.algorithm.delays ? spanMs : 2 * holdMs);
    const delayMs = limit.algorithm.delays ? waitMs : 0;
    // Of units that are held: the time until they come back.
    const heldUntilMs = delayMs === 0 && waitMs > 0 ? this.nowMs + waitMs : undefined;
    // The state may belong to another plan with a longer span.
    const atMs = this.nowMs + this.number("how far ahead the charge counts", 0, maxAheadMs);
    const made = decision(limit, cost, { allowed, remaining, retryAfterMs, resetAfterMs, delayMs, atMs, heldUntilMs });
    return ofUnblocked(made, !allowed || stateAlways ? this.#state(known, isWhole) : undefined);
  }

  /** What the limit alone decides for an inspected key, its state, and the block and the ban of its name. */
  inspected(known: KnownLimit): { readonly decision: Decision; readonly state: Cells; readonly blocks: Cells } {
    const { decision, state } = this.#unblocked(known, 1, true, this.discriminant("what remains", -2, -1), true);
    const blocks = Float64Array.from({ length: blockCells }, () => this.number("a time of a block", 0, largest));
    return { decision, state: state as Cells, blocks };
  }

  #state({ limit, denied }: KnownLimit, isWhole: boolean): Cells | undefined {
    if (isWhole) return this.#cells(limit, limit.policy.holdMs === undefined ? maxInspected : maxHeld);
    if (denied !== undefined) return this.#cells(limit, maxEntries);
    this.discriminant("the size of a state", 0, 0);
    return undefined;
  }

  #cells({ policy, algorithm }: Limit, maxEntries: number): Cells {
    const isHeld = policy.holdMs !== undefined;
    const isLog = policy.algorithm === "sliding-window-log";
    // Held units are a list, and a log is one. An algorithm's size has room for one entry more in each.
    const lists = Number(isHeld) + Number(isLog);
    const least = algorithm.size(policy, noState, 0) - 2 * lists;
    const count = this.discriminant("the size of a state", least, least + 2 * lists * maxEntries);
    const cells = new Float64Array(count);
    // A corrupted state may contain numbers beyond 2^53.
    for (let i = 0; i < count; i++) cells[i] = this.number("a number of a state", -widest, widest);
    const held = isHeld ? (cells[0] as number) : 0;
    const ofLog = (name: string): number => (isLog ? (cells[algorithm.cells.indexOf(name) + 2 * held] as number) : 0);
    if (ofLog("from") === 0 && count === least + 2 * (held + ofLog("to"))) return cells;
    this.outOfRange("the entries of a list", held + ofLog("to"));
    // A search in a list of a wrong length may never end.
    return new Float64Array(least);
  }
}

function ofUnblocked(decision: Decision, state: Cells | undefined): DecisionReply {
  return { decision, unblocked: decision, blocked: undefined, state };
}

const largest = Number.MAX_SAFE_INTEGER;
const maxAheadMs = 2 ** 52;
/** The range of Redis integers. */
const widest = 2 ** 63;

const noState = new Float64Array(3);

/** Whether core's algorithm makes the same decision on a state. If not, the state is corrupted and must not be cached or shown. */
export function explains(state: Cells, decision: Decision, limit: Limit, nowMs: number): boolean {
  const expected = limit.algorithm.decide(limit, state, 0, nowMs, decision.cost, false);
  return (
    expected.allowed === decision.allowed &&
    expected.remaining === decision.remaining &&
    expected.retryAfterMs === decision.retryAfterMs &&
    expected.resetAfterMs === decision.resetAfterMs
  );
}

function isWithin(value: unknown, most: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= most;
}

/** Converts a client's number, bigint, string or bytes to a whole number. Any other value becomes NaN. */
function wholeOf(value: unknown): number {
  if (typeof value === "number") return Number.isInteger(value) ? value : Number.NaN;
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "string" && !(value instanceof Uint8Array)) return Number.NaN;
  const text = String(value);
  return /^-?\d{1,19}$/.test(text) ? Number(text) : Number.NaN;
}

function expected(what: string, at: number, found: unknown): string {
  const given =
    typeof found === "number" || typeof found === "bigint" ? String(found) : found === null ? "null" : `a value of type ${typeof found}`;
  return `its reply is malformed: ${what} was expected at place ${at}, but there was ${given}`;
}
