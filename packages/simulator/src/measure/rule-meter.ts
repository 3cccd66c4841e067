import type { Decision } from "@floodgate/core";
import { doubled, MinHeap } from "../support/min-heap.js";
import type { KeyIndex } from "./key-index.js";
import { WindowSums } from "./window-sums.js";

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

const burstMs = 1000;

/** Columns of the row of a client: how many requests it made, its peak, how many were limited, and its current and longest lock-out. */
const [REQUESTS, PEAK, LIMITED, LOCKED_FROM, LOCKED_UNTIL, LONGEST, ROW] = [0, 1, 2, 3, 4, 5, 6] as const;

/** Measures a rule, request by request. */
export class RuleMeter {
  #requests = 0;
  #limited = 0;
  #clientsLimited = 0;
  #delayed = 0;
  #queuedMs = 0;
  #longestQueuedMs = 0;
  #unmeasured = 0;
  readonly #others = { banned: 0, exempt: 0, "missing-key": 0 };
  readonly #windowMs: number;
  readonly #keys: KeyIndex;
  #rows: Float64Array = new Float64Array(64 * ROW);
  /** What the clients asked for, and what they got, in a window and in a second. */
  readonly #asked: WindowSums;
  readonly #got: WindowSums;
  #worst: MostUnits;
  #burst: MostUnits = { windowMs: burstMs, units: 0, client: -1, atMs: undefined };
  readonly #live: LiveKeys = new LiveKeys();

  /** @param windowMs the length of the windows in which clients are measured. @param keys may be shared with other meters. */
  constructor(windowMs: number, keys: KeyIndex) {
    this.#windowMs = windowMs;
    this.#keys = keys;
    this.#asked = new WindowSums([windowMs]);
    this.#got = new WindowSums([windowMs, burstMs]);
    this.#worst = { ...this.#burst, windowMs };
  }

  /** Adds a request that the rule has decided. */
  add(key: string, nowMs: number, { allowed, cost, delayMs, retryAfterMs, resetAfterMs }: Decision): void {
    this.#requests++;
    if (!allowed) this.#limited++;
    else if (delayMs > 0) {
      this.#delayed++;
      this.#queuedMs += delayMs;
      this.#longestQueuedMs = Math.max(this.#longestQueuedMs, delayMs);
    }
    const client = this.#keys.of(key);
    if (client < 0) {
      this.#unmeasured++;
      return;
    }
    const row = client * ROW;
    while (row + ROW > this.#rows.length) this.#rows = doubled(this.#rows);
    const rows = this.#rows;
    rows[row + REQUESTS] = (rows[row + REQUESTS] as number) + 1;
    this.#asked.add(client, nowMs, cost);
    rows[row + PEAK] = Math.max(rows[row + PEAK] as number, this.#asked.sum(client, 0));
    this.#live.hold(client, nowMs, nowMs + resetAfterMs);
    if (!allowed) {
      this.#lock(row, nowMs, retryAfterMs);
      return;
    }
    rows[row + LOCKED_UNTIL] = 0;
    this.#got.add(client, nowMs, cost);
    this.#worst = more(this.#worst, client, this.#got.sum(client, 0), nowMs);
    this.#burst = more(this.#burst, client, this.#got.sum(client, 1), nowMs);
  }

  #lock(row: number, nowMs: number, retryAfterMs: number): void {
    const rows = this.#rows;
    if (rows[row + LIMITED] === 0) this.#clientsLimited++;
    rows[row + LIMITED] = (rows[row + LIMITED] as number) + 1;
    // A client that came back after it could have passed begins another lock-out.
    if ((rows[row + LOCKED_UNTIL] as number) <= nowMs) rows[row + LOCKED_FROM] = nowMs;
    rows[row + LOCKED_UNTIL] = nowMs + retryAfterMs;
    rows[row + LONGEST] = Math.max(rows[row + LONGEST] as number, nowMs + retryAfterMs - (rows[row + LOCKED_FROM] as number));
  }

  /** Counts an event that is no decision. */
  count(type: "banned" | "exempt" | "missing-key"): void {
    this.#others[type]++;
  }

  /** The mean of the clients' peaks, each at most `bound`. */
  meanPeak(bound: number): number {
    const clients = this.#clients();
    return clients.reduce((sum, client) => sum + Math.min(bound, this.#of(client, PEAK)), 0) / Math.max(1, clients.length);
  }

  measure(top: number): RuleMeasure {
    const clients = this.#clients();
    return {
      requests: this.#requests,
      allowed: this.#requests - this.#limited,
      limited: this.#limited,
      clients: clients.length,
      clientsLimited: this.#clientsLimited,
      topLimited: this.#most(top, LIMITED),
      heaviest: this.#most(top, REQUESTS),
      longestLockoutMs: clients.reduce((longest, client) => Math.max(longest, this.#of(client, LONGEST)), 0),
      windowMs: this.#windowMs,
      worstWindow: this.#peakOf(this.#worst),
      burst: this.#peakOf(this.#burst),
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

  /** The clients that the rule ever limited, by key. */
  limitedClients(): Map<string, MeasuredClient> {
    const limited = this.#clients().filter((client) => this.#of(client, LIMITED) > 0);
    return new Map(limited.map((client) => this.#clientOf(client)).map((client) => [client.key, client]));
  }

  #clients(): number[] {
    return Array.from({ length: this.#keys.size }, (_, client) => client);
  }

  #of(client: number, column: number): number {
    return this.#rows[client * ROW + column] ?? 0;
  }

  #peakOf({ windowMs, units, client, atMs }: MostUnits): Peak {
    return { windowMs, units, key: this.#keys.keyOf(client), atMs };
  }

  #clientOf(client: number): MeasuredClient {
    const key = this.#keys.keyOf(client);
    const [requests, peak, limited, longestLockoutMs] = [REQUESTS, PEAK, LIMITED, LONGEST].map((column) => this.#of(client, column));
    return { key, requests, limited, peak, longestLockoutMs } as MeasuredClient;
  }

  /** The clients with the largest values in a column, except those with 0. */
  #most(top: number, column: number): MeasuredClient[] {
    const best: number[] = [];
    for (let client = 0; client < this.#keys.size; client++) {
      const value = this.#of(client, column);
      if (value === 0 || (best.length === top && value <= this.#of(best[top - 1] as number, column))) continue;
      let at = best.length;
      while (at > 0 && this.#of(best[at - 1] as number, column) < value) at--;
      best.splice(at, 0, client);
      if (best.length > top) best.pop();
    }
    return best.map((client) => this.#clientOf(client));
  }
}

/** The most units of any client in a window. */
interface MostUnits extends Omit<Peak, "key"> {
  readonly client: number;
}

function more(most: MostUnits, client: number, units: number, atMs: number): MostUnits {
  return units > most.units ? { windowMs: most.windowMs, units, client, atMs } : most;
}

/** How many keys a store holds at once: a key is held from its first request until its state is the same as none. */
class LiveKeys {
  /** By the time at which each key is looked at again. */
  readonly #heap = new MinHeap();
  /** 0 for keys that are not held. */
  #untilMs: Float64Array = new Float64Array(64);
  most = 0;

  /** A key has a state from `nowMs` until `untilMs`. Times never go back. */
  hold(key: number, nowMs: number, untilMs: number): void {
    while (this.#heap.lowest <= nowMs) this.#lookAtFirst(nowMs);
    while (key >= this.#untilMs.length) this.#untilMs = doubled(this.#untilMs);
    const isHeld = this.#untilMs[key] !== 0;
    if (!isHeld && untilMs <= nowMs) return;
    this.#untilMs[key] = untilMs;
    if (isHeld) return;
    this.#heap.push(key, untilMs);
    if (this.#heap.size > this.most) this.most = this.#heap.size;
  }

  #lookAtFirst(nowMs: number): void {
    const key = this.#heap.pop();
    const untilMs = this.#untilMs[key] as number;
    if (untilMs > nowMs) this.#heap.push(key, untilMs);
    else this.#untilMs[key] = 0;
  }
}
