import { type Cells, type Clock, type Decision, type Limit, restated } from "@floodgate/core/store";

export interface DenyCacheOptions {
  /** The most keys that are remembered for one limit. */
  readonly maxKeys: number;
  /** How long a state is believed: what another process gives back or resets is noticed no later. */
  readonly maxAgeMs: number;
  /** The clock that was handed over; without one the server's, as far as it is known here. */
  readonly clock: Clock | undefined;
}

/** The state that a rejected request met. */
export interface DeniedState {
  readonly cells: Cells;
  /** What the limit holds beyond that request's cost: where this is the same, requests wait for the same unit. */
  readonly spare: number;
  /** By the store's clock, when Redis looked at it. */
  readonly atMs: number;
  /** By this process's steady clock, when the question went out and when the answer came. */
  readonly sentMs: number;
  readonly receivedMs: number;
}

interface KnownState extends DeniedState {
  /** Whether the key may have more left by now: no reason to reject any more, but good enough to tell of beside one. */
  doubtful: boolean;
}

/** So many entries of a log are handed over as they are (see lua/sliding-window-log.lua), of a longer one only those waited for. */
const wholeLog = 8;

/**
 * Keys whose last request Redis has rejected, with the state that it met. While core's own algorithm says of that state that a
 * request would be rejected, so does Redis: until the key is reset, something is given back, or a plan asks whose bucket fills faster,
 * a state only fills. Of what happens in this process the cache is told; what others do it notices when a state is too old.
 * So a key under attack costs a round trip a second, whatever each request costs, and however busy the limits beside it are: of
 * a neighbour that has let others through meanwhile, what was seen last is told.
 */
export class DenyCache {
  readonly #options: DenyCacheOptions;
  readonly #states = new Map<string, KnownState>();
  /** Keys of which something is being forgotten, and how often: what is seen meanwhile may have been before. */
  readonly #forgetting = new Map<string, number>();

  constructor(options: DenyCacheOptions) {
    this.#options = options;
  }

  add(key: string, state: DeniedState): void {
    // A key that is there already becomes the newest.
    this.#states.delete(key);
    this.#makeRoom(state);
    // Written out: an object made by spreading is read far more slowly, and this is what is read of a key under attack.
    const { cells, spare, atMs, sentMs, receivedMs } = state;
    this.#states.set(key, { cells, spare, atMs, sentMs, receivedMs, doubtful: this.#forgetting.has(key) });
  }

  /** What is known of a key is no reason to reject any more. */
  doubt(key: string): void {
    if (this.#states.size === 0) return;
    const state = this.#states.get(key);
    if (state !== undefined) state.doubtful = true;
  }

  /** Nothing that is known of a key is certain until `done` has settled. */
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

  /** What Redis would say of a request that it would reject for certain; undefined of any other. */
  rejection(limit: Limit, key: string, cost: number): Decision | undefined {
    const decision = this.look(limit, key, cost);
    return decision?.allowed === false ? decision : undefined;
  }

  /**
   * What the state that is known of a key makes of a request; undefined where none is, or it tells the wait too roughly. A rejection
   * is certain; one that is not is told as let through, or not at all where only what is certain will do.
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
      // The server's clock may be a round trip ahead of this reckoning, of which both parts lack less than a millisecond; and a
      // request would take its way to it.
      slackMs = Math.ceil(2 * (state.receivedMs - state.sentMs)) + 1;
    } else {
      nowMs = clock();
    }
    if (nowMs < state.atMs || nowMs - state.atMs > maxAgeMs) {
      this.#states.delete(key);
      return undefined;
    }
    const decision = limit.algorithm.decide(limit, state.cells, 0, nowMs, cost, false);
    if (decision.allowed || decision.retryAfterMs === Number.POSITIVE_INFINITY) return decision;
    if (state.doubtful || !(decision.retryAfterMs > slackMs))
      return certain ? undefined : restated(decision, { allowed: true, retryAfterMs: 0 });
    return isRough(limit, state, cost) ? undefined : decision;
  }

  /** The oldest stand first: they go where there are too many, and once they are believed no more. */
  #makeRoom(newest: DeniedState): void {
    const { clock, maxAgeMs, maxKeys } = this.#options;
    for (const [key, { atMs, receivedMs }] of this.#states) {
      const ageMs = clock === undefined ? newest.receivedMs - receivedMs : newest.atMs - atMs;
      if (ageMs <= maxAgeMs && this.#states.size < maxKeys) return;
      this.#states.delete(key);
    }
  }
}

/** Whether what a request waits for may be among the entries of a log that were handed over as one: its wait would seem too short. */
function isRough({ policy }: Limit, { cells, spare }: DeniedState, cost: number): boolean {
  return policy.algorithm === "sliding-window-log" && (cells[2] as number) > wholeLog && policy.quota - cost !== spare;
}
