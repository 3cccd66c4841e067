import { slidingWindowLog } from "../algorithms/sliding-window-log.js";
import type { Decision } from "../decision.js";
import { type Duration, parseDuration } from "../duration.js";
import { inside } from "../errors.js";
import { createLimit, type Limit } from "../limit.js";
import { checkOptions, wholeNumber } from "../options.js";
import { giveBack } from "../settle.js";
import { andThen, type Store } from "../store.js";

/** A key that is rejected again and again is turned away for a while, whatever its limit would say. */
export interface BanOptions {
  /** How many rejections. */
  readonly after: number;
  /** Within what time. */
  readonly within: Duration;
  /** For how long the key is turned away then. What it asks for meanwhile makes that no longer. */
  readonly for: Duration;
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

  /** @throws FloodgateError where a number or a time is none. */
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
    this.rejections = createLimit(`${name}·rejections`, slidingWindowLog({ limit: after, window: within }));
    this.banned = createLimit(`${name}·ban`, slidingWindowLog({ limit: 1, window: forMs }));
  }

  /** A limit's decision as the ban makes it: where that rejects, the key has nothing left until it is over. */
  apply(decision: Decision, ban: Decision): Decision {
    if (ban.allowed) return decision;
    return {
      ...decision,
      allowed: false,
      remaining: 0,
      retryAfterMs: Math.max(decision.retryAfterMs, ban.retryAfterMs),
      resetAfterMs: Math.max(decision.resetAfterMs, ban.resetAfterMs),
      delayMs: 0,
    };
  }

  /**
   * Counts a rejection; the last of so many within the time begins a ban, and what was counted counts no more.
   * @returns whether this one began it.
   */
  strike(store: Store, key: string): boolean | PromiseLike<boolean> {
    return andThen<Decision, boolean>(store.consume(this.rejections, key, 1), (counted) => {
      if (counted.degraded || (counted.allowed && counted.remaining > 0)) return false;
      return andThen<Decision, boolean>(store.consume(this.banned, key, 1), (banned) => {
        // Without the store none begins, nor with what a fallback would tell it later: the next rejection begins it.
        if (banned.degraded) return andThen(giveBack(store, this.banned, key, banned, undefined), () => false);
        // Of several processes that see the last rejection one begins the ban.
        if (!banned.allowed) return false;
        return andThen<void, boolean>(store.reset(this.rejections, key), () => true);
      });
    });
  }

  reset(store: Store, key: string): readonly unknown[] {
    return [store.reset(this.rejections, key), store.reset(this.banned, key)];
  }
}
