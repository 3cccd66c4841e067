import { type Cells, type Decision, decision, inState } from "@floodgate/core/store";
import type { KnownLimit } from "./limits.js";

/** A decision of one check, with the state that a rejected request met. */
export interface Told {
  readonly decision: Decision;
  readonly state: Cells | undefined;
}

/** The reply is out of step with what was asked. Nothing in it can be relied on. */
export class MalformedReply extends Error {}

/** The entries of a log that the script hands over: the eight oldest, and at most four of the others (see sliding-window-log.lua). */
const mostEntries = 12;

/**
 * Reads the answers of a batch one after the other. lua/batch.lua describes the layout. Every field is checked, because a faulty proxy,
 * another version of the script or an attacker may have answered. A field that is not a number, or that leaves open where the next answer
 * begins, throws a `MalformedReply`. A number out of its range fails only the step at hand.
 */
export class Reply {
  /** The server's clock, when the run began. */
  readonly serverMs: number;
  readonly #serverUs: number;
  /** The time by which the batch was decided. */
  readonly nowMs: number;
  /** By this process's steady clock. */
  readonly sentMs: number;
  readonly receivedMs: number;
  readonly #list: readonly unknown[];
  #at = 1;
  #wrong: string | undefined;

  /** @param clockMs the time that the batch carried; without one the server's own counted. */
  constructor(list: unknown, clockMs: number | undefined, sentMs: number, receivedMs: number) {
    if (!Array.isArray(list)) throw new MalformedReply("its reply is malformed: it is not a list");
    this.#list = list;
    this.#serverUs = wholeOf(list[0]);
    this.serverMs = Math.floor(this.#serverUs / 1000);
    if (!(this.#serverUs >= 0)) throw new MalformedReply(expected("the server's time", 0, list[0]));
    this.nowMs = clockMs ?? this.serverMs;
    this.sentMs = sentMs;
    this.receivedMs = receivedMs;
  }

  /** Whether the batch came too late, so that nothing was done. */
  get isLate(): boolean {
    return this.#list.length === 1;
  }

  /** Call it once all answers have been read. @throws MalformedReply if anything is left over. */
  end(): void {
    if (this.#at !== this.#list.length) throw new MalformedReply(expected("the end", this.#at, this.#list[this.#at]));
  }

  /** The text of a fault, where the next step has failed. */
  fault(): string | undefined {
    const next = this.#list[this.#at];
    if (typeof next === "number") return undefined;
    // A client may be set to hand over numbers as texts, and texts as bytes.
    const isText = typeof next === "string" || next instanceof Uint8Array;
    if (!isText || !Number.isNaN(wholeOf(next))) return undefined;
    this.#at++;
    return String(next);
  }

  /** What is wrong with the answer that was read last, if anything is. Call it after each answer. */
  takeWrong(): string | undefined {
    const wrong = this.#wrong;
    this.#wrong = undefined;
    return wrong;
  }

  /** Notes that a number of the step at hand is out of its range. */
  wrong(what: string, found: number): void {
    this.#wrong ??= expected(what, this.#at - 1, found);
  }

  /** The next number, a whole one that should be from `least` to `most`. */
  number(what: string, least: number, most: number): number {
    const next = this.#next(what);
    if (next < least || next > most) this.wrong(what, next);
    return next;
  }

  /** The next number, which decides how the reply goes on: it must be from `least` to `most`. @throws MalformedReply */
  turn(what: string, least: number, most: number): number {
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

  /**
   * @param stateAlways whether a state follows an allowed request too: of a whole that was rejected it does.
   * @param key the number of the check's key in the run.
   */
  told(known: KnownLimit, cost: number, stateAlways: boolean, key: number): Told {
    const told = this.#told(known, cost, stateAlways);
    // The instant of the check: see lua/prelude.lua.
    inState(told.decision, this.#serverUs + key);
    return told;
  }

  #told(known: KnownLimit, cost: number, stateAlways: boolean): Told {
    const { limit } = known;
    const { quota, spanMs } = limit.policy;
    const first = this.turn("what remains", -2, largest);
    if (first >= 0) {
      if (first > quota) this.wrong("what remains", first);
      const resetMs = this.number("the wait until the reset", 0, largest);
      return { decision: decision(limit, quota, true, first, 0, resetMs, 0, cost, this.nowMs), state: undefined };
    }
    const allowed = first === -1;
    const remaining = this.number("what remains", 0, quota);
    const retryMs = this.number("the wait until a retry", -1, largest);
    // An allowed request has no wait, a rejected one has.
    if (allowed ? cost <= remaining && retryMs !== 0 : retryMs === 0) this.wrong("the wait until a retry", retryMs);
    const retryAfterMs = retryMs < 0 ? Number.POSITIVE_INFINITY : retryMs;
    const resetMs = this.number("the wait until the reset", 0, largest);
    const delayMs = this.number("the delay", 0, allowed && limit.policy.algorithm === "leaky-bucket" ? spanMs : 0);
    // The state may be another plan's, with a longer span.
    const atMs = this.nowMs + this.number("how far ahead the charge counts", 0, mostAheadMs);
    const made = decision(limit, quota, allowed, remaining, retryAfterMs, resetMs, delayMs, cost, atMs);
    return { decision: made, state: !allowed || stateAlways ? this.#state(known) : undefined };
  }

  #state(known: KnownLimit): Cells | undefined {
    const { policy, algorithm } = known.limit;
    const isLog = policy.algorithm === "sliding-window-log";
    const most = known.denied === undefined ? 0 : isLog ? 3 + 2 * mostEntries : algorithm.size(policy, noState, 0);
    const count = this.turn("the size of a state", isLog ? Math.min(3, most) : most, most);
    if (count === 0) return undefined;
    const cells = new Float64Array(count);
    // A state that somebody has tampered with may have numbers beyond 2^53.
    for (let i = 0; i < count; i++) cells[i] = this.number("a number of a state", -widest, widest);
    if (isLog && (cells[1] !== 0 || count !== 3 + 2 * (cells[2] as number))) this.wrong("the entries of a log", cells[2] as number);
    return cells;
  }
}

const largest = Number.MAX_SAFE_INTEGER;
const mostAheadMs = 2 ** 52;
/** What Redis's integers hold. */
const widest = 2 ** 63;

const noState = new Float64Array(3);

/** A whole number, as the client hands it over: as a number, a bigint or a text; NaN for anything else. */
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
