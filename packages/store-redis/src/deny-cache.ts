import { blockedDecision, type Cells, type Clock, copyWith, type Decision, type Limit } from "@floodgate/core/store";

export interface DenyCacheOptions {
  /** The most keys to cache per limit. */
  readonly maxKeys: number;
  /** How long a state is used. Refunds and resets by other processes are noticed after at most this time. */
  readonly maxAgeMs: number;
  /** The injected clock; without one, the server's clock is estimated. */
  readonly clock: Clock | undefined;
}

/** The state that rejected a request. */
export interface DeniedState {
  readonly cells: Cells;
  /** The quota minus the request's cost. Requests with the same value wait for the same unit. */
  readonly spare: number;
  /** When the key's block or ban ends, by the store's clock. */
  readonly blockedUntilMs: number;
  /** When Redis read the state, by the store's clock. */
  readonly atMs: number;
  /** When the command was sent and its reply received, by this process's monotonic clock. */
  readonly sentMs: number;
  readonly receivedMs: number;
}

interface KnownState extends DeniedState {
  /** Whether the key may have more left by now. Then the state cannot reject, but may be shown beside another limit's rejection. */
  doubtful: boolean;
}

/** Entries of a log that arrive exact; of a longer log, only the entry that is waited for is exact too (see lua/sliding-window-log.lua). */
const wholeLog = 8;

/**
 * Caches the states of rejected keys, and repeats Redis's decision on them with core's algorithm. A rejection computed this way is
 * certain, because usage in Redis only grows: unless the key is reset or refunded, or a plan with a faster bucket charges it. Changes
 * by this process invalidate the cache; changes by others are noticed after `maxAgeMs`. So a key under attack costs one round trip a
 * second. Limits beside the rejecting one show their last known numbers.
 */
export class DenyCache {
  readonly #options: DenyCacheOptions;
  readonly #states = new Map<string, KnownState>();
  /** Keys with resets or refunds in flight, and how many. States read meanwhile may be older than those. */
  readonly #forgetting = new Map<string, number>();

  constructor(options: DenyCacheOptions) {
    this.#options = options;
  }

  add(key: string, state: DeniedState): void {
    // Delete first, so that the key becomes the newest.
    this.#states.delete(key);
    this.#makeRoom(state);
    // No object spread: V8 reads such objects much more slowly, and this one is read for each request of a key under attack.
    const { cells, spare, blockedUntilMs, atMs, sentMs, receivedMs } = state;
    this.#states.set(key, { cells, spare, blockedUntilMs, atMs, sentMs, receivedMs, doubtful: this.#forgetting.has(key) });
  }

  /** Stops rejecting by the cached state of a key. */
  doubt(key: string): void {
    if (this.#states.size === 0) return;
    const state = this.#states.get(key);
    if (state !== undefined) state.doubtful = true;
  }

  /** Stops rejecting by states of a key that are read before `done` has settled. */
  forget(key: string, done: Promise<unknown>): void {
    this.doubt(key);
    this.#forgetting.set(key, (this.#forgetting.get(key) ?? 0) + 1);
    const end = (): void => {
      const left = (this.#forgetting.get(key) as number) - 1;
      if (left === 0) this.#forgetting.delete(key);
      else this.#forgetting.set(key, left);
    };
    done.then(end, end);
  }

  /** The decision if Redis is certain to reject; otherwise undefined. */
  rejection(limit: Limit, key: string, cost: number): Decision | undefined {
    const decision = this.look(limit, key, cost);
    return decision?.allowed === false ? decision : undefined;
  }

  /**
   * Decides a request by the cached state; undefined if there is none or its wait is inexact. A returned rejection is certain.
   * Uncertain rejections return allowed, or undefined if `certain`.
   */
  look(limit: Limit, key: string, cost: number, certain = false): Decision | undefined {
    if (this.#states.size === 0) return undefined;
    const state = this.#states.get(key);
    if (state === undefined || (certain && state.doubtful)) return undefined;
    const { clock, maxAgeMs } = this.#options;
    let nowMs: number;
    let slackMs = 0;
    if (clock === undefined) {
      const steadyMs = performance.now();
      nowMs = state.atMs + Math.floor(steadyMs - state.receivedMs);
      // The server's clock may be up to one round trip ahead of this estimate, and a request would take one more to arrive. Add
      // 1 ms because both times are rounded down.
      slackMs = Math.ceil(2 * (state.receivedMs - state.sentMs)) + 1;
    } else {
      nowMs = clock();
    }
    if (nowMs < state.atMs || nowMs - state.atMs > maxAgeMs) {
      this.#states.delete(key);
      return undefined;
    }
    const decision = limit.algorithm.decide(limit, state.cells, 0, nowMs, cost, false);
    const blockedMs = state.blockedUntilMs - nowMs;
    if (blockedMs > slackMs && !state.doubtful) {
      return decision.allowed || !isRough(limit, state, cost) ? blockedDecision(decision, blockedMs) : undefined;
    }
    if (decision.allowed || decision.retryAfterMs === Number.POSITIVE_INFINITY) return decision;
    if (state.doubtful || !(decision.retryAfterMs > slackMs))
      return certain ? undefined : copyWith(decision, { allowed: true, retryAfterMs: 0 });
    return isRough(limit, state, cost) ? undefined : decision;
  }

  /** Evicts states that are too old, and the oldest if there are too many. The map is in order of age. */
  #makeRoom(newest: DeniedState): void {
    const { clock, maxAgeMs, maxKeys } = this.#options;
    for (const [key, { atMs, receivedMs }] of this.#states) {
      const ageMs = clock === undefined ? newest.receivedMs - receivedMs : newest.atMs - atMs;
      if (ageMs <= maxAgeMs && this.#states.size < maxKeys) return;
      this.#states.delete(key);
    }
  }
}

/** Whether the entry that a request waits for may be among the merged entries of a log. Then its wait would be too short. */
function isRough({ policy }: Limit, { cells, spare }: DeniedState, cost: number): boolean {
  return policy.algorithm === "sliding-window-log" && (cells[2] as number) > wholeLog && policy.quota - cost !== spare;
}
