import { slidingWindowLog } from "../algorithms/sliding-window-log.js";
import { restated } from "../limits/charge.js";
import type { Decision } from "../limits/decision.js";
import { createLimit, type Limit } from "../limits/limit.js";
import { giveBack } from "../limits/settle.js";
import type { Store } from "../stores/store.js";
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

/** A ban that a rejection started, or that another request started at the same moment. */
export interface Strike {
  /** Says how long the ban lasts from now on. */
  readonly ban: Decision;
  readonly begun: boolean;
}

/**
 * A rule's bans. Two limits in the store, apart from the rule's own: `rejections` counts the rejections of a key, and `banned` is a log of
 * one entry that lasts as long as the ban. Each request checks `banned` in the same step as the rule's limit. Only a rejection, also one
 * from a deny cache, is counted in `rejections`.
 */
export class Ban {
  readonly rejections: Limit;
  readonly banned: Limit;
  readonly forMs: number;
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
    // The names of rules are ASCII, so they never equal these.
    this.rejections = createLimit(`${name}·rejections`, slidingWindowLog({ limit: after, window: durationText(within) }));
    this.banned = createLimit(`${name}·ban`, slidingWindowLog({ limit: 1, window: durationText(forMs) }));
  }

  /** Applies the ban to a limit's decision: a banned key is rejected until the ban ends. */
  apply(decision: Decision, banned: Decision): Decision {
    return banned.allowed ? decision : this.rejection(decision, banned);
  }

  /** The decision for a banned key. */
  rejection(decision: Decision, ban: Decision): Decision {
    return restated(decision, {
      allowed: false,
      remaining: 0,
      retryAfterMs: Math.max(decision.retryAfterMs, ban.retryAfterMs),
      resetAfterMs: Math.max(decision.resetAfterMs, ban.resetAfterMs),
      delayMs: 0,
    });
  }

  /** Whether the next rejection of a key may start a ban, as far as this process knows. */
  mayBegin(key: string): boolean {
    return this.#strikes.mayBeLast(key);
  }

  /** Counts a rejection. Returns the ban if there is one now. */
  strike(store: Store, key: string): Promised<Strike | undefined> {
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

  #strike(store: Store, key: string): Promised<Strike | undefined> {
    return andThen<Decision, Strike | undefined>(store.consume(this.rejections, key, 1), (counted) => {
      const left = counted.allowed ? counted.remaining : 0;
      this.#strikes.end(key, counted.degraded ? undefined : left);
      if (counted.degraded || left > 0) return undefined;
      return andThen<Decision, Strike | undefined>(store.consume(this.banned, key, 1), (ban) => {
        // During an outage no ban starts, and the fallback must not report this charge. The next rejection starts the ban.
        if (ban.degraded) return andThen(giveBack(store, this.banned, key, ban, undefined), () => undefined);
        // If several processes count the last rejection, one of them starts the ban.
        return { ban, begun: ban.allowed };
      });
    });
  }

  /** Deletes the rejections that led to a ban. */
  forgive(store: Store, key: string): unknown {
    return store.reset(this.rejections, key);
  }

  reset(store: Store, key: string): readonly unknown[] {
    return [store.reset(this.rejections, key), store.reset(this.banned, key)];
  }
}
