import type { DecisionEvent } from "@floodgate/core";
import { doubled } from "../support/min-heap.js";
import { KeyIndex } from "./key-index.js";
import { LiveKeys } from "./live-keys.js";
import { SlidingSums } from "./sliding-sums.js";

/** The most units that one client got, or asked for, in a window. */
export interface Peak {
  readonly windowMs: number;
  readonly units: number;
  readonly key: string | undefined;
  /** When the window ended, in milliseconds since the epoch. */
  readonly atMs: number | undefined;
}

/** What a rule did with the requests of one client. */
export interface MeasuredClient {
  readonly key: string;
  readonly requests: number;
  readonly limited: number;
  /** The most units that it asked for in a window. */
  readonly peak: number;
  /** The longest time in which it was rejected. Infinity if waiting would not have helped. */
  readonly longestLockoutMs: number;
}

/** What a rule did with the requests of a log. */
export interface RuleMeasure {
  readonly requests: number;
  readonly allowed: number;
  readonly limited: number;
  /** How many different keys it counted, and how many of them it ever limited. */
  readonly clients: number;
  readonly clientsLimited: number;
  /** The clients that were limited most, the first one most. */
  readonly topLimited: readonly MeasuredClient[];
  /** The clients with the most requests, the first one most. */
  readonly heaviest: readonly MeasuredClient[];
  readonly longestLockoutMs: number;
  /** The length of the windows in which `peak`s are measured. */
  readonly windowMs: number;
  /** The most units that it let one client have in a window, and in a second. */
  readonly worstWindow: Peak;
  readonly burst: Peak;
  /** How many requests were held back, and for how long. */
  readonly delayed: number;
  readonly queuedMs: number;
  readonly longestQueuedMs: number;
  readonly bans: number;
  /** Requests that it did not count: of exempt clients; and without a key, which were rejected or not by `onMissingKey`. */
  readonly exempt: number;
  readonly keyless: number;
  /** The most keys that a store would hold at once. */
  readonly keysAtOnce: number;
  /** Requests of clients that came after `maxClients` others. They are not among the clients. */
  readonly unmeasured: number;
}

export const burstMs = 1000;

/** Measures one rule, decision by decision. */
export class RuleMeter {
  readonly windowMs: number;
  #requests = 0;
  #limited = 0;
  #clientsLimited = 0;
  #delayed = 0;
  #queuedMs = 0;
  #longestQueuedMs = 0;
  readonly #others = { banned: 0, exempt: 0, "missing-key": 0 };
  #unmeasured = 0;
  readonly #keys: KeyIndex;
  /** For each client: its requests, how many were limited, its peak, and its current and longest lock-out. */
  #rows: Float64Array = new Float64Array(64 * WIDTH);
  readonly #asked: SlidingSums;
  readonly #got: SlidingSums;
  readonly #worst: MostUnits;
  readonly #burst: MostUnits;
  readonly #live = new LiveKeys();

  /** @param windowMs the length of the windows to measure. */
  constructor(windowMs: number, maxClients: number) {
    this.windowMs = windowMs;
    this.#keys = new KeyIndex(maxClients);
    this.#asked = new SlidingSums([windowMs]);
    this.#got = new SlidingSums([windowMs, burstMs]);
    this.#worst = new MostUnits(windowMs);
    this.#burst = new MostUnits(burstMs);
  }

  add({ key, decision }: DecisionEvent, nowMs: number): void {
    const { allowed, cost, delayMs } = decision;
    this.#requests++;
    if (!allowed) this.#limited++;
    if (delayMs > 0 && allowed) {
      this.#delayed++;
      this.#queuedMs += delayMs;
      if (delayMs > this.#longestQueuedMs) this.#longestQueuedMs = delayMs;
    }
    const client = this.#keys.of(key);
    if (client < 0) {
      this.#unmeasured++;
      return;
    }
    const row = client * WIDTH;
    while (row + WIDTH > this.#rows.length) this.#rows = doubled(this.#rows);
    const rows = this.#rows;
    rows[row + REQUESTS] = (rows[row + REQUESTS] as number) + 1;
    this.#asked.add(client, nowMs, cost);
    const asked = this.#asked.sum(client, 0);
    if (asked > (rows[row + PEAK] as number)) rows[row + PEAK] = asked;
    if (allowed) {
      rows[row + LOCKED_UNTIL] = 0;
      this.#got.add(client, nowMs, cost);
      this.#worst.see(client, this.#got.sum(client, 0), nowMs);
      this.#burst.see(client, this.#got.sum(client, 1), nowMs);
    } else {
      if (rows[row + LIMITED] === 0) this.#clientsLimited++;
      rows[row + LIMITED] = (rows[row + LIMITED] as number) + 1;
      // A client that came back after it could have passed begins another lock-out.
      if ((rows[row + LOCKED_UNTIL] as number) <= nowMs) rows[row + LOCKED_FROM] = nowMs;
      rows[row + LOCKED_UNTIL] = nowMs + decision.retryAfterMs;
      const lockedMs = nowMs + decision.retryAfterMs - (rows[row + LOCKED_FROM] as number);
      if (lockedMs > (rows[row + LONGEST] as number)) rows[row + LONGEST] = lockedMs;
    }
    this.#live.hold(client, nowMs, nowMs + decision.resetAfterMs);
  }

  /** Counts an event that is no decision. */
  count(type: "banned" | "exempt" | "missing-key"): void {
    this.#others[type]++;
  }

  /** The mean of the clients' peaks, each at most `bound`. */
  meanPeak(bound: number): number {
    let sum = 0;
    for (let row = 0; row < this.#keys.size * WIDTH; row += WIDTH) sum += Math.min(bound, this.#rows[row + PEAK] as number);
    return this.#keys.size === 0 ? 0 : sum / this.#keys.size;
  }

  measure(top: number): RuleMeasure {
    const rows = this.#rows;
    const limited = this.#most(LIMITED, top);
    const heaviest = this.#most(REQUESTS, top);
    const keys = this.#keys.keysOf([...limited, ...heaviest, this.#worst.client, this.#burst.client]);
    const clientOf = (client: number): MeasuredClient => this.#clientOf(client, keys.get(client) as string);
    let longestLockoutMs = 0;
    for (let row = 0; row < this.#keys.size * WIDTH; row += WIDTH)
      longestLockoutMs = Math.max(longestLockoutMs, rows[row + LONGEST] as number);
    return {
      requests: this.#requests,
      allowed: this.#requests - this.#limited,
      limited: this.#limited,
      clients: this.#keys.size,
      clientsLimited: this.#clientsLimited,
      topLimited: limited.map(clientOf),
      heaviest: heaviest.map(clientOf),
      longestLockoutMs,
      windowMs: this.windowMs,
      worstWindow: this.#worst.peak(keys),
      burst: this.#burst.peak(keys),
      delayed: this.#delayed,
      queuedMs: this.#queuedMs,
      longestQueuedMs: this.#longestQueuedMs,
      bans: this.#others.banned,
      exempt: this.#others.exempt,
      keyless: this.#others["missing-key"],
      keysAtOnce: this.#live.most,
      unmeasured: this.#unmeasured,
    };
  }

  /** The clients that were ever limited, by key. */
  limitedClients(): Map<string, MeasuredClient> {
    const numbers = Array.from({ length: this.#keys.size }, (_, i) => i).filter((i) => this.#rows[i * WIDTH + LIMITED] !== 0);
    return new Map([...this.#keys.keysOf(numbers)].map(([client, key]) => [key, this.#clientOf(client, key)]));
  }

  #clientOf(client: number, key: string): MeasuredClient {
    const row = client * WIDTH;
    return {
      key,
      requests: this.#rows[row + REQUESTS] as number,
      limited: this.#rows[row + LIMITED] as number,
      peak: this.#rows[row + PEAK] as number,
      longestLockoutMs: this.#rows[row + LONGEST] as number,
    };
  }

  /** The clients with the most in a column, except those with nothing. */
  #most(column: number, top: number): number[] {
    const value = (client: number): number => this.#rows[client * WIDTH + column] as number;
    const best: number[] = [];
    for (let client = 0; client < this.#keys.size; client++) {
      if (value(client) === 0) continue;
      if (best.length === top && value(client) <= value(best[top - 1] as number)) continue;
      let at = best.length;
      while (at > 0 && value(best[at - 1] as number) < value(client)) at--;
      best.splice(at, 0, client);
      if (best.length > top) best.pop();
    }
    return best;
  }
}

const [REQUESTS, LIMITED, PEAK, LOCKED_FROM, LOCKED_UNTIL, LONGEST, WIDTH] = [0, 1, 2, 3, 4, 5, 6] as const;

/** The most units of any client in a window. */
class MostUnits {
  readonly #windowMs: number;
  #units = 0;
  client = -1;
  #atMs: number | undefined;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  see(client: number, units: number, atMs: number): void {
    if (units <= this.#units) return;
    this.#units = units;
    this.client = client;
    this.#atMs = atMs;
  }

  peak(keys: ReadonlyMap<number, string>): Peak {
    return { windowMs: this.#windowMs, units: this.#units, key: keys.get(this.client), atMs: this.#atMs };
  }
}
