import { getOrMake } from "../support/maps.js";
import type { Algorithm, Cells, PolicyBase } from "./algorithm.js";
import { MadeDecision } from "./decision.js";
import {
  countOf,
  dropFirst,
  endedAt,
  endOf,
  HEAD,
  heldCells,
  hold,
  maxHeld,
  release,
  timeOf,
  unitsFrom,
  viewOfHeld,
} from "./held-units.js";

const made = new Map<object, object>();

/**
 * The algorithm of a policy whose units may be held: set aside until a time, not yet used. Its cells are a list of held units, and behind it
 * the cells of the policy's own algorithm, to which a request of `cost` units is one of `held + cost`.
 */
export function withHolds<P extends PolicyBase>(inner: Algorithm<P>): Algorithm<P> {
  return getOrMake(made, inner, () => wrap(inner)) as Algorithm<P>;
}

/** Where the cells of the policy's own algorithm begin. */
function behind(cells: Cells, at: number): number {
  return at + HEAD + 2 * countOf(cells, at);
}

function wrap<P extends PolicyBase>(inner: Algorithm<P>): Algorithm<P> {
  const noCells: Cells = new Float64Array(inner.cells.length + 1);
  const sizeBehind = (policy: P, cells: Cells, at: number): number => {
    const from = behind(cells, at);
    return from + inner.cells.length <= cells.length ? inner.size(policy, cells, from) : inner.size(policy, noCells, 0);
  };

  return {
    ...inner,
    name: `held ${inner.name}`,
    cells: [...heldCells, ...inner.cells],
    grows: true,

    size: (policy, cells, at) => HEAD + 2 * (countOf(cells, at) + 1) + sizeBehind(policy, cells, at),

    decide(limit, cells, at, nowMs, cost, commit) {
      const { policy } = limit;
      const longestMs = policy.holdMs as number;
      const forMs = limit.holdMs ?? longestMs;
      const atMs = timeOf(cells, at, nowMs, longestMs);
      let count = countOf(cells, at);
      let first = endedAt(cells, at, atMs);
      let held = unitsFrom(cells, at, first);
      let seen = inner.decide(limit, cells, behind(cells, at), nowMs, held + cost, false);
      const isFull = (): boolean => forMs > 0 && count - first >= maxHeld;
      const allowed = seen.allowed && !isFull();
      let heldUntilMs: number | undefined;
      if (allowed && commit) {
        const size = sizeBehind(policy, cells, at);
        dropFirst(cells, at, first, size);
        if (forMs > 0) {
          const windowEndMs = inner.windowEndMs?.(policy, seen.atMs) ?? Number.POSITIVE_INFINITY;
          heldUntilMs = Math.min((atMs ?? nowMs) + forMs, windowEndMs);
          hold(cells, at, heldUntilMs, cost, size);
          held += cost;
        } else {
          seen = inner.decide(limit, cells, behind(cells, at), nowMs, cost, true);
        }
        first = 0;
        count = countOf(cells, at);
      }
      const least = isFull() ? 1 : 0;
      const remaining = least > 0 ? 0 : Math.max(seen.remaining - held, 0);
      const lastMs = held > 0 ? endOf(cells, at, count - 1) - nowMs : 0;
      let retryAfterMs = 0;
      if (cost > remaining) {
        const from = behind(cells, at);
        const endsAfter = (ended: number): number => (ended === 0 ? 0 : endOf(cells, at, first + ended - 1) - nowMs);
        const waitAfter = (ended: number): number =>
          inner.decide(limit, cells, from, nowMs, unitsFrom(cells, at, first + ended) + cost, false).retryAfterMs;
        // The more holds have ended, the shorter is the wait: the first number of them that is enough by the time they have ended.
        let low = least;
        let high = count - first;
        while (low < high) {
          const middle = (low + high) >>> 1;
          if (waitAfter(middle) <= endsAfter(middle)) high = middle;
          else low = middle + 1;
        }
        retryAfterMs = Math.max(waitAfter(low), endsAfter(low));
        if (low > least) retryAfterMs = Math.min(retryAfterMs, waitAfter(low - 1));
      }
      const resetAfterMs = Math.max(seen.resetAfterMs, lastMs);
      return new MadeDecision(limit, cost, { allowed, remaining, retryAfterMs, resetAfterMs, delayMs: 0, atMs: seen.atMs, heldUntilMs });
    },

    endOf: (policy, cells, at, nowMs) => inner.endOf?.(policy, cells, behind(cells, at), nowMs) ?? 0,

    settle: (policy, cells, at, ...charge) => inner.settle(policy, cells, behind(cells, at), ...charge),

    settleHeld(policy, cells, at, nowMs, heldUntilMs, reserved, cost) {
      const size = sizeBehind(policy, cells, at);
      const released = release(cells, at, timeOf(cells, at, nowMs, policy.holdMs as number), heldUntilMs, reserved, size);
      const charged = cost === 0 ? 0 : inner.settle(policy, cells, behind(cells, at), nowMs, nowMs, 0, cost);
      return charged - released;
    },

    view(policy, cells, at, nowMs) {
      const used = inner.view(policy, cells, behind(cells, at), nowMs);
      return viewOfHeld(cells, at, endedAt(cells, at, timeOf(cells, at, nowMs, policy.holdMs as number)), policy.quota, used);
    },
  };
}
