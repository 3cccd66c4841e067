import { type Duration, durationOption, durationText } from "../support/duration.js";
import { wrongOption } from "../support/errors.js";
import { checkOptions, quotaNumber } from "../support/options.js";
import {
  type Algorithm,
  type AlgorithmDefinition,
  type Cells,
  type DecisionUnder,
  emptyView,
  type NamedPolicy,
  type PolicyBase,
  register,
} from "./algorithm.js";
import { MadeDecision } from "./decision.js";
import {
  countOf,
  dropFirst,
  endedAt,
  endOf,
  entryThatFrees,
  HEAD,
  heldCells,
  hold,
  maxHeld,
  release,
  timeOf,
  unitsFrom,
  viewOfHeld,
} from "./held-units.js";

/** A slot for each request in flight. */
export interface ConcurrencyPolicy extends PolicyBase {
  readonly algorithm: "concurrency";
  readonly limit: number;
  readonly holdMs: number;
}

export interface ConcurrencyOptions {
  /** The most requests at once, up to 10,000; 0 rejects every request. */
  limit: number;
  /** After what time a slot comes back that is neither given back nor renewed, because its process died: `"30s"`. */
  hold: Duration;
}

/**
 * At most `limit` requests at once. A middleware takes a slot for each request, renews it while the request runs, and gives it back when the
 * response ends. Outside HTTP use `limiter.run`. The slots of a process that died come back after `hold`.
 *
 *     concurrency({ limit: 10, hold: "30s" })
 */
export function concurrency(options: ConcurrencyOptions): ConcurrencyPolicy {
  const where = "concurrency";
  checkOptions(where, options, ["limit", "hold"], `${where}({ limit: 10, hold: "30s" })`);
  const limit = quotaNumber(where, "limit", options.limit, 10);
  if (limit > maxHeld) throw wrongOption(where, "limit", `at most ${maxHeld}, because each request in flight is kept`, limit, "limit: 100");
  const holdMs = durationOption(where, "hold", options.hold);
  return Object.freeze({ algorithm: where, limit, holdMs, quota: limit, spanMs: holdMs, stateKind: `${where} ${holdMs}` });
}

/** Decides a request. @param owns whether it had its units until now: then it gets them again, even above the limit. */
function take<Q extends ConcurrencyPolicy>(
  limit: NamedPolicy<Q>,
  cells: Cells,
  at: number,
  nowMs: number,
  cost: number,
  commit: boolean,
  owns: boolean,
): DecisionUnder<Q> {
  const { limit: quota, holdMs } = limit.policy;
  const listedMs = timeOf(cells, at, nowMs, holdMs);
  const atMs = listedMs ?? nowMs;
  let first = endedAt(cells, at, listedMs);
  let held = unitsFrom(cells, at, first);
  const allowed = owns || cost <= quota - held;
  if (allowed && commit) {
    dropFirst(cells, at, first);
    hold(cells, at, atMs + holdMs, cost);
    first = 0;
    held += cost;
  }
  const remaining = Math.max(quota - held, 0);
  const resetAfterMs = held === 0 ? 0 : endOf(cells, at, countOf(cells, at) - 1) - nowMs;
  let retryAfterMs = 0;
  if (cost > quota) retryAfterMs = Number.POSITIVE_INFINITY;
  else if (cost > remaining) retryAfterMs = endOf(cells, at, entryThatFrees(cells, at, first, held + cost - quota)) - nowMs;
  return new MadeDecision(limit, cost, { allowed, remaining, retryAfterMs, resetAfterMs, delayMs: 0, atMs });
}

const algorithm: Algorithm<ConcurrencyPolicy> = {
  name: "concurrency",
  parameters: ["limit", "holdMs"],
  cells: [...heldCells, "list"],
  grows: true,

  size: (_policy, cells, at) => HEAD + 2 * (countOf(cells, at) + 1),

  decide: (limit, cells, at, nowMs, cost, commit) => take(limit, cells, at, nowMs, cost, commit, false),

  settle({ holdMs }, cells, at, nowMs, chargedAtMs, reserved, cost) {
    return cost >= reserved ? 0 : 0 - release(cells, at, timeOf(cells, at, nowMs, holdMs), chargedAtMs + holdMs, reserved - cost);
  },

  renew(limit, cells, at, nowMs, chargedAtMs, cost, untilMs = Number.POSITIVE_INFINITY) {
    const owns = algorithm.settle(limit.policy, cells, at, nowMs, chargedAtMs, cost, 0) < 0;
    const mayTake = owns || nowMs < untilMs;
    return take(limit, cells, at, nowMs, mayTake ? cost : Number.POSITIVE_INFINITY, true, owns);
  },

  view({ limit, holdMs }, cells, at, nowMs) {
    return viewOfHeld(cells, at, endedAt(cells, at, timeOf(cells, at, nowMs, holdMs)), limit, emptyView);
  },
};

export const concurrencyDefinition: AlgorithmDefinition<ConcurrencyPolicy, ConcurrencyOptions> = register("concurrency", {
  numbers: ["limit", "hold"],
  make: concurrency,
  optionsOf: ({ limit, holdMs }) => ({ limit, hold: durationText(holdMs) }),
  algorithms: [algorithm],
});
