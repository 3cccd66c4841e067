import type { CombinedDecision, Decision } from "../decide/decision.js";
import type { Check } from "../decide/limit.js";
import { type Answer, type Mode, scopeOf } from "../decide/store.js";
import { isZero, ZeroLimits } from "../decide/zero-limits.js";
import { emitDecided, emitEach, timeOfAsking } from "../events/decision-events.js";
import { activeListener } from "../events/listeners.js";
import type { Duration } from "../support/duration.js";
import { FloodgateError, shown } from "../support/errors.js";
import { andThen } from "../support/promises.js";
import type { Key } from "./key.js";
import { checkConsumedKey, checkCost, type Limiter, type NamedLimiter, promisedBy } from "./limiter.js";

/** One of several limits that a request must pass. */
export interface LimiterCheck<M extends Mode> {
  readonly limiter: Limiter<M>;
  readonly key: Key;
  /** A whole number of at least 1; default 1. */
  readonly cost?: number;
  /** How long the units are held, under a limiter with `hold`, whose time is the longest. */
  readonly hold?: Duration;
}

/**
 * Checks several limits on one store in one atomic step: all are charged, or none is. If the store fails, the first limiter's
 * `timeoutMs` and `onStoreError` apply.
 *
 *     const { allowed, decision } = consumeAll([
 *       { limiter: perIp, key: clientKey(ip) },
 *       { limiter: perUser, key: userId, cost: 3 },
 *     ]);
 *
 * @throws FloodgateError if the limiters have different stores, or one appears twice with the same key.
 */
export function consumeAll<M extends Mode>(checks: readonly LimiterCheck<M>[]): Answer<CombinedDecision, M> {
  const first = checks[0]?.limiter;
  if (first === undefined) {
    throw new FloodgateError("FLOODGATE_INVALID_OPTION", "consumeAll takes at least one check. Write consumeAll([{ limiter, key }]).");
  }
  const list = checks.map(({ limiter, key, cost, hold }, index): Check => {
    if (scopeOf(limiter.store) !== scopeOf(first.store)) {
      throw new FloodgateError(
        "FLOODGATE_DIFFERENT_STORES",
        `consumeAll checks limiters of one store in one atomic step, but ${shown(limiter.name)} and ${shown(first.name)} have different stores. Give both the same store.`,
      );
    }
    const check = {
      limit: (limiter as NamedLimiter<M>).holding(hold, "consumeAll"),
      key: limiter.keyText(checkConsumedKey(key)),
      cost: cost === undefined ? 1 : checkCost(cost),
    };
    for (let i = 0; i < index; i++) {
      const other = checks[i];
      if (other?.limiter.name === limiter.name && other.limiter.keyText(other.key) === check.key) {
        throw new FloodgateError(
          "FLOODGATE_DUPLICATE_NAME",
          `consumeAll was given ${shown(limiter.name)} twice with the same key. Pass it once, with the sum of the costs.`,
        );
      }
    }
    return check;
  });
  const limiters = checks.map(({ limiter }) => limiter as NamedLimiter<M>);
  const guard = (first as NamedLimiter<M>).guard;
  const listeners = limiters.map(({ onEvent }) => activeListener(onEvent));
  const askedMs = listeners.some((listener) => listener !== undefined) ? timeOfAsking(guard) : 0;
  const deciding = list.some(({ limit }) => isZero(limit)) ? new ZeroLimits(guard).decide(list) : guard.decide(list);
  const combined = andThen<CombinedDecision, CombinedDecision>(deciding, (whole) => {
    const { allowed, all } = whole;
    listeners.forEach((listener, i) => {
      if (listener !== undefined) emitEach(listener, [list[i] as Check], { allowed, all: [all[i] as Decision] }, askedMs);
    });
    emitDecided(listeners[all.indexOf(whole.decision)], list, whole);
    return whole;
  });
  return promisedBy<CombinedDecision, M>(guard.mode, combined);
}
