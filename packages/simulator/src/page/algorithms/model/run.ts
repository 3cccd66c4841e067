import type { Policy, StateView } from "@floodgate/core";
import type { Decision } from "@floodgate/core/store";
import { KeyStates } from "../../../measure/key-states.js";
import { WindowSums } from "../../../measure/per-client.js";

/** What a policy has done with the requests up to a moment. */
export interface Counts {
  readonly allowed: number;
  readonly limited: number;
  /** Allowed requests that had to wait. */
  readonly delayed: number;
  /** The most requests that passed in any window, and when this window ended, in milliseconds since the epoch. */
  readonly most: number;
  readonly maxAtMs: number;
}

export interface Moment {
  readonly view: StateView;
  readonly decision: Decision;
}

/** Their level moves all the time. In the others whole requests come free, and a view of a long log would take long to make. */
const hasFractions: ReadonlySet<Policy["algorithm"]> = new Set(["token-bucket", "gcra", "leaky-bucket"]);

/** A copy of the state is kept before each 64th request, so that any moment is reached by deciding a few requests again. */
const stride = 64;

/**
 * The decisions of one policy on a list of requests of one key. The algorithm of core decides each of them at its own time, so any moment
 * can be shown, forwards and backwards.
 */
export class Run {
  readonly policy: Policy;
  /** The times of the requests, ascending, in milliseconds since the epoch. */
  readonly times: readonly number[];
  readonly allowed: boolean[] = [];
  /** How long each allowed request waits. */
  readonly delaysMs: number[] = [];
  /** The requests that would still have passed after each one, with a fraction where tokens arrive continuously. */
  readonly rooms: number[] = [];
  readonly #counts: Counts[] = [{ allowed: 0, limited: 0, delayed: 0, most: 0, maxAtMs: 0 }];
  readonly #kept: KeyStates[] = [];

  /** @param windowMs the length of the windows in which passing requests are counted. */
  constructor(policy: Policy, times: readonly number[], windowMs: number) {
    this.policy = policy;
    this.times = times;
    const passed = new WindowSums(windowMs);
    const state = new KeyStates(policy);
    let counts = this.#counts[0] as Counts;
    for (const [i, timeMs] of times.entries()) {
      if (i % stride === 0) this.#kept.push(state.copy());
      const decision = state.decide(0, timeMs, 1);
      this.allowed.push(decision.allowed);
      this.delaysMs.push(decision.delayMs);
      this.rooms.push(this.#room(state, timeMs));
      counts = added(counts, decision, passed, timeMs);
      this.#counts.push(counts);
    }
  }

  /** The counts of all requests up to a moment. */
  countsAt(nowMs: number): Counts {
    return this.#counts[countUpTo(this.times, nowMs)] as Counts;
  }

  /** The state at a moment, after the requests up to it. */
  momentAt(nowMs: number): Moment {
    const count = countUpTo(this.times, nowMs);
    const from = Math.max(0, Math.floor((count - 1) / stride));
    const state = this.#kept[from]?.copy() ?? new KeyStates(this.policy);
    for (const timeMs of this.times.slice(from * stride, count)) state.decide(0, timeMs, 1);
    return { view: state.view(0, nowMs), decision: state.decide(0, nowMs, 1, false) };
  }

  /** How many requests would pass at each of these moments, which ascend. */
  roomsAt(moments: readonly number[]): number[] {
    const state = new KeyStates(this.policy);
    let next = 0;
    return moments.map((nowMs) => {
      for (; next < this.times.length && (this.times[next] as number) <= nowMs; next++) state.decide(0, this.times[next] as number, 1);
      return this.#room(state, nowMs);
    });
  }

  #room(state: KeyStates, nowMs: number): number {
    if (!hasFractions.has(this.policy.algorithm)) return state.decide(0, nowMs, 1, false).remaining;
    const view = state.view(0, nowMs);
    if (view.kind === "bucket") return Math.max(view.level, 0);
    if (view.kind === "queue") return Math.max(view.capacity - view.length, 0);
    return this.policy.quota;
  }
}

/** The counts with one more decision. A request passes when its delay is over; a queue keeps the order. */
function added(counts: Counts, { allowed, delayMs }: Decision, passed: WindowSums, timeMs: number): Counts {
  if (!allowed) return { ...counts, limited: counts.limited + 1 };
  const sum = passed.add(0, timeMs + delayMs, 1);
  const most = sum > counts.most ? { most: sum, maxAtMs: timeMs + delayMs } : {};
  return { ...counts, allowed: counts.allowed + 1, delayed: counts.delayed + (delayMs > 0 ? 1 : 0), ...most };
}

/** How many of these times, which ascend, are at or before a moment. */
function countUpTo(times: readonly number[], nowMs: number): number {
  const after = times.findIndex((timeMs) => timeMs > nowMs);
  return after < 0 ? times.length : after;
}
