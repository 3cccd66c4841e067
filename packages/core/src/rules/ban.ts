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

/** A key that is rejected again and again is turned away for a while, whatever its limit would say. */
export interface BanOptions {
  /** How many rejections. */
  readonly after: number;
  /** Within what time. */
  readonly within: Duration;
  /** For how long the key is turned away then. What it asks for meanwhile makes that no longer. */
  readonly for: Duration;
}

/** What a rejection has come to: a ban, which it has begun or found. */
export interface Strike {
  /** How long the ban lasts from now on. */
  readonly ban: Decision;
  readonly begun: boolean;
}

/**
 * The two counts of a ban, kept in the store like any other and apart from the limit's own: the rejections of a key, exactly; and
 * whether it is banned, a log of one entry that lasts as long as the ban. Each request looks at the second in the step that checks
 * the limit; only a rejection is counted in the first, also one that a deny cache has said.
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
    // A rule's own name is ASCII, so none is one of these.
    this.rejections = createLimit(`${name}·rejections`, slidingWindowLog({ limit: after, window: durationText(within) }));
    this.banned = createLimit(`${name}·ban`, slidingWindowLog({ limit: 1, window: durationText(forMs) }));
  }

  /** A limit's decision as the ban makes it: where that rejects, the key has nothing left until it is over. */
  apply(decision: Decision, look: Decision): Decision {
    return look.allowed ? decision : this.rejection(decision, look);
  }

  /** The decision for a key whose ban has been begun. */
  rejection(decision: Decision, ban: Decision): Decision {
    return restated(decision, {
      allowed: false,
      remaining: 0,
      retryAfterMs: Math.max(decision.retryAfterMs, ban.retryAfterMs),
      resetAfterMs: Math.max(decision.resetAfterMs, ban.resetAfterMs),
      delayMs: 0,
    });
  }

  /** Whether the next rejection of a key may begin a ban, for all that this process knows. */
  mayBegin(key: string): boolean {
    return this.#strikes.mayBeLast(key);
  }

  /** Counts a rejection. Answers the ban that it begins, or that another has begun at the same moment. */
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
        // Without the store none begins, nor with what a fallback would tell it later: the next rejection begins it.
        if (ban.degraded) return andThen(giveBack(store, this.banned, key, ban, undefined), () => undefined);
        // Of several processes that see the last rejection one begins the ban.
        return { ban, begun: ban.allowed };
      });
    });
  }

  /** What was counted towards a ban that has begun counts no more. */
  forgive(store: Store, key: string): unknown {
    return store.reset(this.rejections, key);
  }

  reset(store: Store, key: string): readonly unknown[] {
    return [store.reset(this.rejections, key), store.reset(this.banned, key)];
  }
}
