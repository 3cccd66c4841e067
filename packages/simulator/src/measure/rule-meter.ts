import type { Decision } from "@floodgate/core";
import TinyQueue from "tinyqueue";
import { type KeyIndex, PerClient, WindowSums } from "./per-client.js";

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
  /** By client: how many requests it made, its peak, how many were limited, and its current and longest lock-out. */
  readonly #made = new PerClient();
  readonly #peaks = new PerClient();
  readonly #rejected = new PerClient();
  readonly #lockedFrom = new PerClient();
  readonly #lockedUntil = new PerClient();
  readonly #longest = new PerClient();
  /** What the clients asked for in a window, and what they got in a window and in a second. */
  readonly #asked: WindowSums;
  readonly #got: WindowSums;
  readonly #gotInSecond = new WindowSums(burstMs);
  #worst: Peak;
  #burst: Peak = { windowMs: burstMs, units: 0, key: undefined, atMs: undefined };
  readonly #live: LiveKeys = new LiveKeys();

  /** @param windowMs the length of the windows in which clients are measured. @param keys may be shared with other meters. */
  constructor(windowMs: number, keys: KeyIndex) {
    this.#windowMs = windowMs;
    this.#keys = keys;
    this.#asked = new WindowSums(windowMs);
    this.#got = new WindowSums(windowMs);
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
    this.#made.add(client, 1);
    this.#peaks.raise(client, this.#asked.add(client, nowMs, cost));
    this.#live.hold(client, nowMs, nowMs + resetAfterMs);
    if (!allowed) {
      this.#lock(client, nowMs, retryAfterMs);
      return;
    }
    this.#lockedUntil.set(client, 0);
    this.#worst = more(this.#worst, key, this.#got.add(client, nowMs, cost), nowMs);
    this.#burst = more(this.#burst, key, this.#gotInSecond.add(client, nowMs, cost), nowMs);
  }

  #lock(client: number, nowMs: number, retryAfterMs: number): void {
    if (this.#rejected.get(client) === 0) this.#clientsLimited++;
    this.#rejected.add(client, 1);
    // A client that came back after it could have passed begins another lock-out.
    if (this.#lockedUntil.get(client) <= nowMs) this.#lockedFrom.set(client, nowMs);
    this.#lockedUntil.set(client, nowMs + retryAfterMs);
    this.#longest.raise(client, nowMs + retryAfterMs - this.#lockedFrom.get(client));
  }

  /** Counts an event that is no decision. */
  count(type: "banned" | "exempt" | "missing-key"): void {
    this.#others[type]++;
  }

  /** The mean of the clients' peaks, each at most `bound`. */
  meanPeak(bound: number): number {
    const clients = this.#clients();
    return clients.reduce((sum, client) => sum + Math.min(bound, this.#peaks.get(client)), 0) / Math.max(1, clients.length);
  }

  measure(top: number): RuleMeasure {
    const clients = this.#clients();
    return {
      requests: this.#requests,
      allowed: this.#requests - this.#limited,
      limited: this.#limited,
      clients: clients.length,
      clientsLimited: this.#clientsLimited,
      topLimited: this.#most(top, this.#rejected),
      heaviest: this.#most(top, this.#made),
      longestLockoutMs: clients.reduce((longest, client) => Math.max(longest, this.#longest.get(client)), 0),
      windowMs: this.#windowMs,
      worstWindow: this.#worst,
      burst: this.#burst,
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
    const limited = this.#clients().filter((client) => this.#rejected.get(client) > 0);
    return new Map(limited.map((client) => this.#clientOf(client)).map((client) => [client.key, client]));
  }

  #clients(): number[] {
    return Array.from({ length: this.#keys.size }, (_, client) => client);
  }

  #clientOf(client: number): MeasuredClient {
    return {
      key: this.#keys.keyOf(client) as string,
      requests: this.#made.get(client),
      limited: this.#rejected.get(client),
      peak: this.#peaks.get(client),
      longestLockoutMs: this.#longest.get(client),
    };
  }

  /** The clients with the largest of these numbers, except those with 0. */
  #most(top: number, numbers: PerClient): MeasuredClient[] {
    const best: number[] = [];
    for (let client = 0; client < this.#keys.size; client++) {
      const value = numbers.get(client);
      if (value === 0 || (best.length === top && value <= numbers.get(best[top - 1] as number))) continue;
      let at = best.length;
      while (at > 0 && numbers.get(best[at - 1] as number) < value) at--;
      best.splice(at, 0, client);
      if (best.length > top) best.pop();
    }
    return best.map((client) => this.#clientOf(client));
  }
}

function more(most: Peak, key: string, units: number, atMs: number): Peak {
  return units > most.units ? { windowMs: most.windowMs, units, key, atMs } : most;
}

/** How many keys a store holds at once: a key is held from its first request until its state is the same as none. */
class LiveKeys {
  /** By the time at which each key is looked at again. */
  readonly #queue = new TinyQueue<{ readonly key: number; readonly atMs: number }>([], (a, b) => a.atMs - b.atMs);
  /** 0 for keys that are not held. */
  readonly #untilMs = new PerClient();
  most = 0;

  /** A key has a state from `nowMs` until `untilMs`. Times never go back. */
  hold(key: number, nowMs: number, untilMs: number): void {
    for (let first = this.#queue.peek(); first !== undefined && first.atMs <= nowMs; first = this.#queue.peek()) this.#lookAtFirst(nowMs);
    const isHeld = this.#untilMs.get(key) !== 0;
    if (!isHeld && untilMs <= nowMs) return;
    this.#untilMs.set(key, untilMs);
    if (isHeld) return;
    this.#queue.push({ key, atMs: untilMs });
    this.most = Math.max(this.most, this.#queue.length);
  }

  #lookAtFirst(nowMs: number): void {
    const { key } = this.#queue.pop() as { key: number };
    const untilMs = this.#untilMs.get(key);
    if (untilMs > nowMs) this.#queue.push({ key, atMs: untilMs });
    else this.#untilMs.set(key, 0);
  }
}
