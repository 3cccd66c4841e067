import type { Decision } from "@floodgate/core";
import { doubled, MinHeap } from "../support/min-heap.js";
import { KeyIndex } from "./key-index.js";
import { type WindowSum, WindowSums } from "./window-sums.js";

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

/** The most policies that one meter measures: each has a bit. */
export const mostPolicies = 31;

/** Measures a rule, request by request; or several policies that count the same requests of the same clients, each as if it were alone. */
export class RuleMeter {
  #requests = 0;
  readonly #others = { banned: 0, exempt: 0, "missing-key": 0 };
  #unmeasured = 0;
  readonly #keys: KeyIndex;
  readonly #policies: readonly PolicyMeter[];
  /** The lengths of the windows in which the policies are measured. */
  readonly #lengths: readonly number[];
  /** For each client: its requests, and its peak in windows of each length. */
  #clients: Float64Array;
  /** What the clients asked for; and what they got under each policy, in a window and in a second. */
  readonly #sums: WindowSums;

  /** @param windowsMs for each policy, the length of the windows in which it is measured. */
  constructor(windowsMs: readonly number[], maxClients: number) {
    this.#keys = new KeyIndex(maxClients);
    this.#policies = windowsMs.map((windowMs) => new PolicyMeter(windowMs));
    this.#lengths = [...new Set(windowsMs)];
    this.#clients = new Float64Array(64 * (1 + this.#lengths.length));
    const got = windowsMs.flatMap((windowMs, i): WindowSum[] => [
      { windowMs, mark: 1 << i },
      { windowMs: burstMs, mark: 1 << i },
    ]);
    this.#sums = new WindowSums([...this.#lengths.map((windowMs) => ({ windowMs })), ...got]);
  }

  /** Adds a request: what each policy decided. */
  add(key: string, nowMs: number, decisions: readonly Decision[]): void {
    this.#requests++;
    const client = this.#keys.of(key);
    const { cost } = decisions[0] as Decision;
    let marks = 0;
    for (let i = 0; i < decisions.length; i++) {
      const decision = decisions[i] as Decision;
      if (decision.allowed) marks |= 1 << i;
      (this.#policies[i] as PolicyMeter).add(client, nowMs, decision);
    }
    if (client < 0) {
      this.#unmeasured++;
      return;
    }
    this.#sums.add(client, nowMs, cost, marks);
    const lengths = this.#lengths.length;
    const row = client * (1 + lengths);
    while (row + 1 + lengths > this.#clients.length) this.#clients = doubled(this.#clients);
    const clients = this.#clients;
    clients[row] = (clients[row] as number) + 1;
    for (let i = 0; i < lengths; i++) {
      const asked = this.#sums.sum(client, i);
      if (asked > (clients[row + 1 + i] as number)) clients[row + 1 + i] = asked;
    }
    for (let i = 0; i < decisions.length; i++) {
      if ((marks & (1 << i)) === 0) continue;
      const policy = this.#policies[i] as PolicyMeter;
      policy.worst.see(client, this.#sums.sum(client, lengths + 2 * i), nowMs);
      policy.burst.see(client, this.#sums.sum(client, lengths + 2 * i + 1), nowMs);
    }
  }

  /** Counts an event that is no decision. */
  count(type: "banned" | "exempt" | "missing-key"): void {
    this.#others[type]++;
  }

  /** The mean of the clients' peaks under the first policy, each at most `bound`. */
  meanPeak(bound: number): number {
    const own = this.#policies[0] as PolicyMeter;
    let sum = 0;
    for (let client = 0; client < this.#keys.size; client++) sum += Math.min(bound, this.#peakOf(own, client));
    return this.#keys.size === 0 ? 0 : sum / this.#keys.size;
  }

  measure(top: number, policy = 0): RuleMeasure {
    const own = this.#policies[policy] as PolicyMeter;
    const limited = this.#most(top, (client) => own.of(client, LIMITED));
    const heaviest = this.#most(top, (client) => this.#requestsOf(client));
    const keys = this.#keys.keysOf([...limited, ...heaviest, own.worst.client, own.burst.client]);
    const clientOf = (client: number): MeasuredClient => this.#clientOf(own, client, keys.get(client) as string);
    let longestLockoutMs = 0;
    for (let client = 0; client < this.#keys.size; client++) longestLockoutMs = Math.max(longestLockoutMs, own.of(client, LONGEST));
    return {
      requests: this.#requests,
      allowed: this.#requests - own.limited,
      limited: own.limited,
      clients: this.#keys.size,
      clientsLimited: own.clientsLimited,
      topLimited: limited.map(clientOf),
      heaviest: heaviest.map(clientOf),
      longestLockoutMs,
      windowMs: own.windowMs,
      worstWindow: own.worst.peak(keys),
      burst: own.burst.peak(keys),
      delayed: own.delayed,
      queuedMs: own.queuedMs,
      longestQueuedMs: own.longestQueuedMs,
      bans: this.#others.banned,
      exempt: this.#others.exempt,
      keyless: this.#others["missing-key"],
      keysAtOnce: own.live.most,
      unmeasured: this.#unmeasured,
    };
  }

  /** The clients that a policy ever limited, by key. */
  limitedClients(policy = 0): Map<string, MeasuredClient> {
    const own = this.#policies[policy] as PolicyMeter;
    const numbers = Array.from({ length: this.#keys.size }, (_, i) => i).filter((client) => own.of(client, LIMITED) !== 0);
    return new Map([...this.#keys.keysOf(numbers)].map(([client, key]) => [key, this.#clientOf(own, client, key)]));
  }

  #requestsOf(client: number): number {
    return this.#clients[client * (1 + this.#lengths.length)] as number;
  }

  #peakOf({ windowMs }: PolicyMeter, client: number): number {
    return this.#clients[client * (1 + this.#lengths.length) + 1 + this.#lengths.indexOf(windowMs)] as number;
  }

  #clientOf(policy: PolicyMeter, client: number, key: string): MeasuredClient {
    return {
      key,
      requests: this.#requestsOf(client),
      limited: policy.of(client, LIMITED),
      peak: this.#peakOf(policy, client),
      longestLockoutMs: policy.of(client, LONGEST),
    };
  }

  /** The clients with the largest values, except those with nothing. */
  #most(top: number, value: (client: number) => number): number[] {
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

/** What one policy did. */
class PolicyMeter {
  readonly windowMs: number;
  limited = 0;
  clientsLimited = 0;
  delayed = 0;
  queuedMs = 0;
  longestQueuedMs = 0;
  readonly worst: MostUnits;
  readonly burst: MostUnits;
  readonly live: LiveKeys = new LiveKeys();
  /** For each client that it ever limited, and those before it: how many requests were limited, its current and its longest lock-out. */
  #rows: Float64Array = new Float64Array(0);

  constructor(windowMs: number) {
    this.windowMs = windowMs;
    this.worst = new MostUnits(windowMs);
    this.burst = new MostUnits(burstMs);
  }

  /** @param client -1 for one that is not measured. */
  add(client: number, nowMs: number, { allowed, delayMs, retryAfterMs, resetAfterMs }: Decision): void {
    if (allowed && delayMs > 0) {
      this.delayed++;
      this.queuedMs += delayMs;
      if (delayMs > this.longestQueuedMs) this.longestQueuedMs = delayMs;
    }
    if (!allowed) this.limited++;
    if (client < 0) return;
    if (!allowed) this.#lock(client, nowMs, retryAfterMs);
    else if (client * ROW < this.#rows.length) this.#rows[client * ROW + LOCKED_UNTIL] = 0;
    this.live.hold(client, nowMs, nowMs + resetAfterMs);
  }

  of(client: number, column: number): number {
    return this.#rows[client * ROW + column] ?? 0;
  }

  #lock(client: number, nowMs: number, retryAfterMs: number): void {
    const row = client * ROW;
    while (row + ROW > this.#rows.length) this.#rows = doubled(this.#rows, 64 * ROW);
    const rows = this.#rows;
    if (rows[row + LIMITED] === 0) this.clientsLimited++;
    rows[row + LIMITED] = (rows[row + LIMITED] as number) + 1;
    // A client that came back after it could have passed begins another lock-out.
    if ((rows[row + LOCKED_UNTIL] as number) <= nowMs) rows[row + LOCKED_FROM] = nowMs;
    rows[row + LOCKED_UNTIL] = nowMs + retryAfterMs;
    const lockedMs = nowMs + retryAfterMs - (rows[row + LOCKED_FROM] as number);
    if (lockedMs > (rows[row + LONGEST] as number)) rows[row + LONGEST] = lockedMs;
  }
}

const [LIMITED, LOCKED_FROM, LOCKED_UNTIL, LONGEST, ROW] = [0, 1, 2, 3, 4] as const;

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
