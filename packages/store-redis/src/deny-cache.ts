import { blockedDecision, type Cells, type Clock, copyWith, type Decision, type KeyBlock, type Limit } from "@floodgate/core/store";
import { LRUCache } from "lru-cache";
import { type Changes, longestAgeMs } from "./changes.js";
import { RecentResets, rememberedMs } from "./recent-resets.js";

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

/** Its `sentMs` and `receivedMs` are by the clock of the cache: with an injected clock, both are its `atMs`. */
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
  readonly maxAgeMs: number;
  /** The same while `changes` says that nobody has changed anything. */
  readonly extendedAgeMs: number;
}

/** Two clocks may drift apart by this ratio: twice the most that NTP corrects. */
const drift = 0.001;

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
  /** By the suffix or the name that they concern, and the key. */
  readonly #resets = new RecentResets();

  constructor(options: DenyCacheOptions) {
    this.#options = options;
    this.#states = new LRUCache({ maxSize: options.maxKeys, sizeCalculation: ({ others }) => 1 + (others?.size ?? 0) });
  }

  add({ limit, suffix }: CachedLimit, key: string, state: DeniedState): void {
    const { cells, spare, blocked, atMs } = state;
    const hasResets = !this.#resets.isEmpty;
    // A block may have been made or lifted since: then only Redis knows.
    if (hasResets && this.#resets.mayFollow(`:${limit.name} ${key}`, state.sentMs)) return;
    const mayBeOld = hasResets && this.#resets.mayFollow(`${suffix} ${key}`, state.sentMs);
    // Resets before that are not remembered any more.
    const doubtful = mayBeOld || state.receivedMs - state.sentMs > rememberedMs;
    const isInjected = this.#options.clock !== undefined;
    const sentMs = isInjected ? atMs : state.sentMs;
    const receivedMs = isInjected ? atMs : state.receivedMs;
    const last = this.#states.peek(key);
    let others = last?.others;
    if (last !== undefined && last.suffix !== suffix) {
      others ??= new Map();
      others.set(last.suffix, last);
      others.delete(suffix);
      for (const [oldest, other] of others) {
        if (others.size < this.#options.maxKeys && this.#mayReject(other, receivedMs)) break;
        others.delete(oldest);
      }
    }
    // No object spread: V8 reads such objects much more slowly, and this one is read for each request of a key under attack.
    this.#states.set(key, { suffix, cells, spare, blocked, atMs, sentMs, receivedMs, doubtful, others });
    this.#options.changes.read(receivedMs);
    for (const oldest of this.#states.rvalues()) {
      if (this.#mayReject(oldest as KnownState, receivedMs)) return;
      this.#states.pop();
    }
  }

  /** Whether a state is not too old to be used, or may be found not to be. */
  #mayReject({ sentMs, receivedMs }: KnownState, nowMs: number): boolean {
    const { maxAgeMs, changes } = this.#options;
    const ageMs = nowMs - receivedMs;
    return ageMs <= maxAgeMs || (ageMs <= longestAgeMs && changes.mayLast(sentMs));
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
    this.#resets.note(`${suffix} ${key}`, done);
  }

  /** Drops the states of a key, and does not cache one of that name that is read before `done` has settled. */
  forgetName(name: string, key: string, done: Promise<unknown>): void {
    this.#states.delete(key);
    this.#resets.note(`:${name} ${key}`, done);
  }

  /**
   * Decides a request by the cached state. Undefined if the key has no cached state, or if its wait is inexact. A returned rejection is certain.
   * Uncertain rejections return allowed with their longest wait, or undefined if `certain`.
   */
  look({ limit, suffix, maxAgeMs, extendedAgeMs }: CachedLimit, key: string, cost: number, certain = false): Decision | undefined {
    const state = this.#find(suffix, key);
    if (state === undefined || (certain && state.doubtful)) return undefined;
    const { clock, changes } = this.#options;
    const steadyMs = clock === undefined ? performance.now() : clock();
    const { sentMs, receivedMs } = state;
    const knownMs = steadyMs - receivedMs;
    const ageMs = Math.floor(knownMs);
    const nowMs = state.atMs + ageMs;
    // The server's clock may be up to one round trip ahead of this estimate, and a request would take one more to arrive. Add
    // 1 ms because both times are rounded down.
    const slackMs = clock === undefined ? Math.ceil(2 * (receivedMs - sentMs) + drift * knownMs) + 1 : 0;
    changes.read(steadyMs);
    const isOld = ageMs > maxAgeMs;
    if (ageMs < 0 || (isOld && (ageMs > extendedAgeMs || state.doubtful || !changes.holds(sentMs, steadyMs)))) return undefined;
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
