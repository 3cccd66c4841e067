import type { Check, CombinedDecision, Decision } from "../decide/decision.js";
import { type Answer, type Mode, scopeOf } from "../decide/store.js";
import { decideWithZeros, isZero } from "../decide/zero-limits.js";
import { decidingOf, emitLimitEvents, emitRequestDecided, timeOfAsking } from "../events/decision-events.js";
import { activeListener } from "../events/listeners.js";
import type { Duration } from "../support/duration.js";
import { FloodgateError, invalidOption, shown, wrongOption } from "../support/errors.js";
import { checkOptions } from "../support/options.js";
import { andThen } from "../support/promises.js";
import { checkConsumedKey, type Key } from "./key.js";
import { type Limiter, type NamedLimiter, promisedBy } from "./limiter.js";
import { checkCost } from "./settle.js";

/** One of several limits that a request must pass. */
export interface LimiterCheck<M extends Mode> {
  readonly limiter: Limiter<M>;
  readonly key: Key;
  /** A whole number of at least 1; default 1. */
  readonly cost?: number;
  /** How long the units are held, at most the limiter's own `hold`. */
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
  checkChecks(checks);
  const first = (checks as readonly [LimiterCheck<M>])[0].limiter;
  const scope = scopeOf(first.store);
  // Allocated in its full length, because an array that grows reserves too much memory.
  const list = new Array<Check>(checks.length);
  let listens = false;
  let hasZero = false;
  for (let i = 0; i < list.length; i++) {
    const { limiter, key, cost, hold } = checks[i] as LimiterCheck<M>;
    if (scopeOf(limiter.store) !== scope) {
      const message = `consumeAll checks limiters of one store, but ${shown(limiter.name)} and ${shown(first.name)} have different ones. Give both the same store.`;
      throw new FloodgateError("FLOODGATE_DIFFERENT_STORES", message);
    }
    const named = limiter as NamedLimiter<M>;
    const text = named.keyText(checkConsumedKey(key));
    for (let j = 0; j < i; j++) {
      if (list[j]?.limit.name !== limiter.name || list[j]?.key !== text) continue;
      const message = `consumeAll was given ${shown(limiter.name)} twice with the same key. Pass it once, with the sum of the costs.`;
      throw new FloodgateError("FLOODGATE_DUPLICATE_NAME", message);
    }
    const limit = named.holding(hold, "consumeAll");
    list[i] = { limit, key: text, cost: cost === undefined ? 1 : checkCost(cost), shadow: false, dryRun: false };
    hasZero ||= isZero(limit);
    listens ||= activeListener(named.onEvent) !== undefined;
  }
  const { guard } = first as NamedLimiter<M>;
  const listeners = listens ? checks.map(({ limiter }) => activeListener((limiter as NamedLimiter<M>).onEvent)) : [];
  const askedMs = listens ? timeOfAsking(guard) : 0;
  const deciding = hasZero ? decideWithZeros(list, guard) : guard.decide(list);
  if (!listens) return promisedBy<CombinedDecision, M>(guard.mode, deciding);
  const combined = andThen<CombinedDecision, CombinedDecision>(deciding, (whole) => {
    const { allowed, all } = whole;
    listeners.forEach((listener, i) => {
      if (listener !== undefined) emitLimitEvents(listener, [list[i] as Check], { allowed, all: [all[i] as Decision] }, askedMs);
    });
    emitRequestDecided(listeners[all.indexOf(decidingOf(list, whole))], list, whole);
    return whole;
  });
  return promisedBy<CombinedDecision, M>(guard.mode, combined);
}

const example = "consumeAll([{ limiter, key }])";

/** @throws FloodgateError unless it is an array of at least one check. A misspelt cost must not take one unit. */
function checkChecks(checks: readonly LimiterCheck<Mode>[]): void {
  if (!Array.isArray(checks)) {
    throw invalidOption(`consumeAll takes an array of checks, but was given ${shown(checks)}. Write ${example}.`);
  }
  if (checks.length === 0) throw invalidOption(`consumeAll takes at least one check. Write ${example}.`);
  for (const check of checks) {
    // Without the arrays that `checkOptions` makes.
    let isKnown = typeof check === "object" && check !== null;
    for (const option in check) isKnown &&= option === "limiter" || option === "key" || option === "cost" || option === "hold";
    if (!isKnown) checkOptions("consumeAll", check, ["limiter", "key", "cost", "hold"], example);
    const limiter: Partial<NamedLimiter<Mode>> | null | undefined = check.limiter;
    if (typeof limiter?.keyText === "function" && limiter.guard !== undefined) continue;
    throw wrongOption("consumeAll", "limiter", "a limiter", limiter, 'limiter: createLimiter({ name: "api", policy, store })');
  }
}
