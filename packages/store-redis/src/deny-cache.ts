import { blockedDecision, type Cells, type Clock, copyWith, type Decision, type KeyBlock, type Limit } from "@floodgate/core/store";
import { LRUCache } from "lru-cache";
import { type Changes, longestMs } from "./changes.js";

export interface DenyCacheOptions {
  /** The most states to cache: keys, each counted once for each limit that rejects it. */
  readonly maxKeys: number;
  /** How long a state is used without a look at `changes`. Refunds and resets by other processes are noticed after at most this time. */
  readonly maxAgeMs: number;
  readonly changes: Changes;
  /** The injected clock; without one, the server's clock is estimated. */
  readonly clock: Clock | undefined;
}

/** The state that rejected a request. */
export interface DeniedState {
  readonly cells: Cells;
  /** The quota minus the request's cost. Requests with the same value wait for the same unit. */
  readonly spare: number;
  readonly blocked: KeyBlock | undefined;
  /** When Redis read the state, by the store's clock. */
  readonly atMs: number;
  /** When the command was sent and its reply received, by this process's monotonic clock. */
  readonly sentMs: number;
  readonly receivedMs: number;
}

interface KnownState extends DeniedState {
  /** The end of the state's Redis key. */
  readonly suffix: string;
  /** Whether the key may have more left by now. Then the state cannot reject, but may be shown beside another limit's rejection. */
  doubtful: boolean;
  /** The older states of the same key, under other limits, by their suffixes and in order of age. The newest state has them. */
  readonly others: Map<string, KnownState> | undefined;
}

/** A limit as the cache knows it. */
export interface CachedLimit {
  readonly limit: Limit;
  /** The end of its Redis keys. Limits with the same suffix share their counts. */
  readonly suffix: string;
  /** How long a cached rejection is used. Units that other processes give back end a rejection, so with leases it is a life at most. */
  readonly deniedMs: number;
  /** The same while `changes` says that nobody has changed anything. */
  readonly longestMs: number;
}

/** Two clocks may drift apart by this ratio: twice the most that NTP corrects. */
const drift = 0.001;

/** How long at least an answered reset or refund is remembered. */
const rememberedMs = 1000;

/** Entries of a log that arrive exact; of a longer log, only the entry that is waited for is exact too (see lua/sliding-window-log.lua). */
const wholeLog = 8;

/**
 * Caches the states of rejected keys for all limits of a store, and repeats Redis's decision on them with core's algorithm. A rejection
 * computed this way is certain, because usage in Redis only grows: unless the key is reset or refunded, or a plan with a faster bucket
 * charges it. Changes by this process invalidate the cache; changes by others are noticed after `maxAgeMs`. Until somebody announces one, a
 * key under attack costs one round trip a minute; from then on, one a second. Limits beside the rejecting one show their last known numbers.
 */
export class DenyCache {
  readonly #options: DenyCacheOptions;
  /** By key, in order of age: reading a state does not move it. */
  readonly #states: LRUCache<string, KnownState>;
  /** How many resets and refunds are in flight, by the suffix or the name that they concern and the key. */
  readonly #forgetting = new Map<string, number>();
  /** When those of the last second or two were answered. A state that was asked for before may be older, although its reply is read later. */
  #forgotten = new Map<string, number>();
  #forgottenBefore = new Map<string, number>();
  #turnedMs = Number.NEGATIVE_INFINITY;

  constructor(options: DenyCacheOptions) {
    this.#options = options;
    this.#states = new LRUCache({ maxSize: options.maxKeys, sizeCalculation: ({ others }) => 1 + (others?.size ?? 0) });
  }

  add({ limit, suffix }: CachedLimit, key: string, state: DeniedState): void {
    const { cells, spare, blocked, atMs, sentMs, receivedMs } = state;
    const isForgotten = (id: string): boolean =>
      this.#forgetting.has(id) || sentMs <= (this.#forgotten.get(id) ?? this.#forgottenBefore.get(id) ?? Number.NEGATIVE_INFINITY);
    const knowsAny = this.#forgetting.size + this.#forgotten.size + this.#forgottenBefore.size > 0;
    // A block may have been made or lifted since: then only Redis knows.
    if (knowsAny && isForgotten(`:${limit.name} ${key}`)) return;
    const mayBeOld = knowsAny && isForgotten(`${suffix} ${key}`);
    // What was forgotten before that is not known any more.
    const doubtful = mayBeOld || receivedMs - sentMs > rememberedMs;
    const last = this.#states.peek(key);
    let others = last?.others;
    if (last !== undefined && last.suffix !== suffix) {
      others ??= new Map();
      others.set(last.suffix, last);
      others.delete(suffix);
      for (const [oldest, other] of others) {
        if (others.size < this.#options.maxKeys && this.#mayReject(other, state)) break;
        others.delete(oldest);
      }
    }
    // No object spread: V8 reads such objects much more slowly, and this one is read for each request of a key under attack.
    this.#states.set(key, { suffix, cells, spare, blocked, atMs, sentMs, receivedMs, doubtful, others });
    this.#options.changes.read(this.#options.clock === undefined ? receivedMs : atMs);
    for (const oldest of this.#states.rvalues()) {
      if (this.#mayReject(oldest as KnownState, state)) return;
      this.#states.pop();
    }
  }

  /** Whether a state is not too old to be used, or may be found not to be. */
  #mayReject(state: DeniedState, newest: DeniedState): boolean {
    const { clock, maxAgeMs, changes } = this.#options;
    const ageMs = clock === undefined ? newest.receivedMs - state.receivedMs : newest.atMs - state.atMs;
    return ageMs <= maxAgeMs || (ageMs <= longestMs && changes.mayLast(clock === undefined ? state.sentMs : state.atMs));
  }

  #find(suffix: string, key: string): KnownState | undefined {
    if (this.#states.size === 0) return undefined;
    const newest = this.#states.peek(key);
    return newest?.suffix === suffix ? newest : newest?.others?.get(suffix);
  }

  /** Stops rejecting by the cached state of a key. */
  doubt(suffix: string, key: string): void {
    const state = this.#find(suffix, key);
    if (state !== undefined) state.doubtful = true;
  }

  /** Stops rejecting by the state of a key that is read before `done` has settled. */
  forget(suffix: string, key: string, done: Promise<unknown>): void {
    this.doubt(suffix, key);
    this.#noteForgetting(`${suffix} ${key}`, done);
  }

  /** Drops the states of a key, and does not cache one of that name that is read before `done` has settled. */
  forgetName(name: string, key: string, done: Promise<unknown>): void {
    this.#states.delete(key);
    this.#noteForgetting(`:${name} ${key}`, done);
  }

  #noteForgetting(id: string, done: Promise<unknown>): void {
    this.#forgetting.set(id, (this.#forgetting.get(id) ?? 0) + 1);
    const end = (): void => {
      const nowMs = performance.now();
      if (nowMs - this.#turnedMs > rememberedMs) {
        this.#forgottenBefore = this.#forgotten;
        this.#forgotten = new Map();
        this.#turnedMs = nowMs;
      }
      this.#forgotten.set(id, nowMs);
      const left = (this.#forgetting.get(id) as number) - 1;
      if (left === 0) this.#forgetting.delete(id);
      else this.#forgetting.set(id, left);
    };
    done.then(end, end);
  }

  /**
   * Decides a request by the cached state. Undefined if the key has no cached state, or if its wait is inexact. A returned rejection is certain.
   * Uncertain rejections return allowed with their longest wait, or undefined if `certain`.
   */
  look({ limit, suffix, deniedMs, longestMs }: CachedLimit, key: string, cost: number, certain = false): Decision | undefined {
    const state = this.#find(suffix, key);
    if (state === undefined || (certain && state.doubtful)) return undefined;
    const { clock, changes } = this.#options;
    let nowMs: number;
    let slackMs = 0;
    // By the clock of `changes`.
    let steadyMs: number;
    let { sentMs } = state;
    if (clock === undefined) {
      steadyMs = performance.now();
      const knownMs = steadyMs - state.receivedMs;
      nowMs = state.atMs + Math.floor(knownMs);
      // The server's clock may be up to one round trip ahead of this estimate, and a request would take one more to arrive. Add
      // 1 ms because both times are rounded down.
      slackMs = Math.ceil(2 * (state.receivedMs - sentMs) + drift * knownMs) + 1;
    } else {
      steadyMs = nowMs = clock();
      sentMs = state.atMs;
    }
    changes.read(steadyMs);
    const ageMs = nowMs - state.atMs;
    const isOld = ageMs > deniedMs;
    if (ageMs < 0 || (isOld && (ageMs > longestMs || state.doubtful || !changes.holds(sentMs, steadyMs)))) return undefined;
    const decision = limit.algorithm.decide(limit, state.cells, 0, nowMs, cost, false);
    const { blocked } = state;
    const rough = !decision.allowed && isRough(limit, state, cost);
    if (blocked !== undefined && blocked.untilMs - nowMs > slackMs) {
      return rough || state.doubtful ? undefined : blockedDecision(decision, blocked, nowMs);
    }
    // Nobody announces that a limit is used up.
    if (isOld && certain && decision.allowed) return undefined;
    if (decision.allowed || decision.retryAfterMs === Number.POSITIVE_INFINITY) return decision;
    if (rough) return undefined;
    if (!state.doubtful && decision.retryAfterMs > slackMs) return decision;
    return certain ? undefined : copyWith(decision, { allowed: true });
  }
}

/** Whether the entry that a request waits for may be among the merged entries of a log. Then its wait would be too short. */
function isRough({ policy }: Limit, { cells, spare }: DeniedState, cost: number): boolean {
  return policy.algorithm === "sliding-window-log" && (cells[2] as number) > wholeLog && policy.quota - cost !== spare;
}
