import { slidingWindowLog } from "../algorithms/sliding-window-log.js";
import type { Decision } from "../decide/decision.js";
import { createLimit, type Limit } from "../decide/limit.js";
import type { Blocked, Store } from "../decide/store.js";
import { type Duration, durationText, parseDuration } from "../support/duration.js";
import { inside } from "../support/errors.js";
import { checkOptions, wholeNumber } from "../support/options.js";
import type { Promised } from "../support/promises.js";
import { andThen, isPromise } from "../support/promises.js";
import { Strikes } from "./strikes.js";

/** Bans a key for a while after repeated rejections. */
export interface BanOptions {
  /** The number of rejections that starts a ban. */
  readonly after: number;
  /** The time in which rejections are counted. */
  readonly within: Duration;
  /** How long the key is banned. Requests during the ban do not extend it. */
  readonly for: Duration;
}

/**
 * Counts the rejections of a key in the store, like any other limit, and blocks the key there when there are too many. The store turns a
 * banned key away in the step that checks the limit. Rejections by a deny cache are counted too; those by a ban or a block are not.
 */
export class Ban {
  readonly rejections: Limit;
  readonly forMs: number;
  readonly #name: string;
  readonly #strikes = new Strikes();

  /** @throws FloodgateError if a number or a duration is invalid. */
  constructor(where: string, name: string, options: BanOptions) {
    const place = `${where}: ban`;
    const { after, within, forMs } = inside(["ban"], () => {
      checkOptions(place, options, ["after", "within", "for"], 'ban: { after: 10, within: "1m", for: "1h" }');
      return {
        after: wholeNumber(place, "after", options.after, 1, 10),
        within: parseDuration(options.within, "within"),
        forMs: parseDuration(options.for, "for"),
      };
    });
    this.forMs = forMs;
    this.#name = name;
    // The name of a rule is ASCII, so none is this.
    this.rejections = createLimit(`${name}·rejections`, slidingWindowLog({ limit: after, window: durationText(within) }));
  }

  /** Whether the next rejection of a key may start a ban, as far as this process knows. */
  mayBegin(key: string): boolean {
    return this.#strikes.mayBeLast(key);
  }

  /** Counts a rejection. Returns the ban if there is one now: of several processes that count the last rejection, one starts it. */
  strike(store: Store, key: string): Promised<Blocked | undefined> {
    if (store.mode === "sync") return this.#strike(store, key);
    this.#strikes.begin(key);
    const failed = (error: unknown): never => {
      this.#strikes.end(key, undefined);
      throw error;
    };
    try {
      const strike = this.#strike(store, key);
      return isPromise(strike) ? strike.then(undefined, failed) : strike;
    } catch (error) {
      return failed(error);
    }
  }

  #strike(store: Store, key: string): Promised<Blocked | undefined> {
    return andThen<Decision, Blocked | undefined>(store.consume(this.rejections, key, 1), (counted) => {
      const left = counted.allowed ? counted.remaining : 0;
      this.#strikes.end(key, counted.degraded ? undefined : left);
      // During an outage no ban starts. The next rejection starts it.
      return counted.degraded || left > 0 ? undefined : store.block(this.#name, key, this.forMs, "ban");
    });
  }

  /** Deletes the rejections that led to a ban. */
  forgive(store: Store, key: string): unknown {
    return store.reset(this.rejections, key);
  }
}
