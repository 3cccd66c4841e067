import type { LeakyBucketPolicy, Policy, SlidingWindowCounterPolicy, SlidingWindowLogPolicy, TokenBucketPolicy } from "@floodgate/core";

/** What a refund goes by. */
export interface Charge {
  readonly atMs: number;
  readonly cost: number;
}

/**
 * One algorithm, as its definition reads: which costs fit, and what taking and giving back make of a state. Times handed
 * in are never before the state's own. Waits, `remaining` and expiry are no part of it: `Model` finds them by trying.
 */
export interface Rules<S> {
  readonly quota: number;
  readonly spanMs: number;
  /** The state's own time. */
  ownMs(state: S): number;
  /** Whether anything of the state is left at that time. */
  counts(state: S, atMs: number): boolean;
  fits(state: S | undefined, atMs: number, cost: number): boolean;
  take(state: S | undefined, atMs: number, cost: number): S;
  /** What a rejection leaves, where it leaves something. */
  reject?(state: S | undefined, atMs: number, cost: number): S;
  /** The wait of a request that is accepted. */
  delayMs?(state: S | undefined, atMs: number): number;
  /** The state once a charge has been given back as far as it still counts (full or empty again is none), and the units given. */
  give(state: S, atMs: number, charge: Charge): [S | undefined, number];
}

function fixedWindowRules(limit: number, windowMs: number): Rules<{ windowAtMs: number; units: number }> {
  const windowOf = (atMs: number) => Math.floor(atMs / windowMs) * windowMs;
  return {
    quota: limit,
    spanMs: windowMs,
    ownMs: (state) => state.windowAtMs,
    counts: (state, atMs) => state.units > 0 && windowOf(atMs) === state.windowAtMs,
    fits: (state, _atMs, cost) => (state?.units ?? 0) + cost <= limit,
    take: (state, atMs, cost) => ({ windowAtMs: windowOf(atMs), units: (state?.units ?? 0) + cost }),
    give(state, _atMs, charge) {
      const units = windowOf(charge.atMs) === state.windowAtMs ? Math.min(charge.cost, state.units) : 0;
      return [units === state.units ? undefined : { ...state, units: state.units - units }, units];
    },
  };
}

/** The state is the times of the units, one by one. */
function logRules({ limit, windowMs, countRejected }: SlidingWindowLogPolicy): Rules<number[]> {
  const kept = (times: number[] | undefined, atMs: number) => (times ?? []).filter((time) => time > atMs - windowMs);
  const take = (times: number[] | undefined, atMs: number, cost: number) => [...kept(times, atMs), ...Array<number>(cost).fill(atMs)];
  const rules: Rules<number[]> = {
    quota: limit,
    spanMs: windowMs,
    ownMs: (times) => Math.max(...times),
    counts: (times, atMs) => kept(times, atMs).length > 0,
    fits: (times, atMs, cost) => kept(times, atMs).length + cost <= limit,
    take,
    give(times, atMs, charge) {
      const still = kept(times, atMs).filter((time) => time === charge.atMs).length;
      const units = Math.min(charge.cost, still);
      const first = times.indexOf(charge.atMs);
      const left = times.filter((_, i) => i < first || i >= first + units);
      return [left.length === 0 ? undefined : left, units];
    },
  };
  if (countRejected) rules.reject = (times, atMs, cost) => take(times, atMs, Math.min(cost, limit)).slice(-limit);
  return rules;
}

/** The state is a count for each sub-window that saw a charge, by its start. */
function counterRules({ limit, windowMs, buckets }: SlidingWindowCounterPolicy): Rules<Map<number, number>> {
  const widthMs = windowMs / buckets;
  const startOf = (atMs: number) => Math.floor(atMs / widthMs) * widthMs;
  const overlaps = (startMs: number, atMs: number) => startMs + widthMs > atMs - windowMs;
  return {
    quota: limit,
    spanMs: windowMs,
    ownMs: (counts) => Math.max(...counts.keys()),
    counts: (counts, atMs) => [...counts].some(([startMs, units]) => units > 0 && overlaps(startMs, atMs)),
    fits(counts, atMs, cost) {
      const currentMs = startOf(atMs);
      let newer = 0;
      for (const [startMs, units] of counts ?? []) if (startMs > currentMs - windowMs) newer += units;
      const oldest = BigInt(counts?.get(currentMs - windowMs) ?? 0);
      const weighted = (oldest * BigInt(widthMs - (atMs - currentMs))) / BigInt(widthMs);
      return Number(weighted) + newer + cost <= limit;
    },
    take(counts, atMs, cost) {
      const next = new Map([...(counts ?? [])].filter(([startMs]) => overlaps(startMs, atMs)));
      return next.set(startOf(atMs), (next.get(startOf(atMs)) ?? 0) + cost);
    },
    give(counts, atMs, charge) {
      const startMs = startOf(charge.atMs);
      const units = overlaps(startMs, atMs) ? Math.min(charge.cost, counts.get(startMs) ?? 0) : 0;
      if (units === 0) return [counts, 0];
      const next = new Map(counts).set(startMs, (counts.get(startMs) ?? 0) - units);
      return [[...next.values()].some((count) => count > 0) ? next : undefined, units];
    },
  };
}

/** `parts` is the level at `timeMs`; a unit is `everyMs` parts, and `amount` parts flow each millisecond: no fractions. */
interface Level {
  readonly parts: bigint;
  readonly timeMs: number;
}

function smoothRules(capacity: number, amount: number, everyMs: number): Rules<Level> {
  const unit = BigInt(everyMs);
  const full = BigInt(capacity) * unit;
  const levelAt = (state: Level | undefined, atMs: number) => {
    const level = state === undefined ? full : state.parts + BigInt(atMs - state.timeMs) * BigInt(amount);
    return level < full ? level : full;
  };
  return {
    quota: capacity,
    spanMs: Number((full + BigInt(amount) - 1n) / BigInt(amount)),
    ownMs: (state) => state.timeMs,
    counts: (state, atMs) => levelAt(state, atMs) < full,
    fits: (state, atMs, cost) => BigInt(cost) * unit <= levelAt(state, atMs),
    take: (state, atMs, cost) => ({ parts: levelAt(state, atMs) - BigInt(cost) * unit, timeMs: atMs }),
    give(state, atMs, charge) {
      // A charge after the last one is of a state that a clock's jump made void.
      if (charge.atMs > state.timeMs) return [state, 0];
      const due = BigInt(charge.cost) * unit - BigInt(atMs - charge.atMs) * BigInt(amount);
      const missing = full - levelAt(state, atMs);
      const back = due < 0n ? 0n : due < missing ? due : missing;
      return [back === missing ? undefined : { ...state, parts: state.parts + back }, Number(back) / everyMs];
    },
  };
}

function intervalRules({ capacity, refill, everyMs }: TokenBucketPolicy): Rules<{ tokens: number; refilledMs: number }> {
  type State = { tokens: number; refilledMs: number };
  const refilled = (state: State | undefined, atMs: number): State => {
    if (state === undefined) return { tokens: capacity, refilledMs: atMs };
    const times = Math.floor((atMs - state.refilledMs) / everyMs);
    const tokens = Math.min(capacity, state.tokens + times * refill);
    return { tokens, refilledMs: state.refilledMs + times * everyMs };
  };
  return {
    quota: capacity,
    spanMs: Math.ceil(capacity / refill) * everyMs,
    ownMs: (state) => state.refilledMs,
    counts: (state, atMs) => refilled(state, atMs).tokens < capacity,
    fits: (state, atMs, cost) => cost <= refilled(state, atMs).tokens,
    take(state, atMs, cost) {
      const now = refilled(state, atMs);
      return { ...now, tokens: now.tokens - cost };
    },
    give(state, atMs, charge) {
      // A charge after the next refill is of a state that a clock's jump made void.
      if (charge.atMs >= state.refilledMs + everyMs) return [state, 0];
      const now = refilled(state, atMs);
      let due = charge.cost;
      for (let refillMs = now.refilledMs; refillMs > charge.atMs && due > 0; refillMs -= everyMs) due -= refill;
      const back = Math.max(0, Math.min(due, capacity - now.tokens));
      return [now.tokens + back === capacity ? undefined : { ...state, tokens: state.tokens + back }, back];
    },
  };
}

function queueRules({ capacity, leak, everyMs, maxDelayMs }: LeakyBucketPolicy): Rules<Level> {
  const unit = BigInt(everyMs);
  const full = BigInt(capacity) * unit;
  const pace = BigInt(leak);
  const backlogAt = (state: Level | undefined, atMs: number) => {
    const backlog = state === undefined ? 0n : state.parts - BigInt(atMs - state.timeMs) * pace;
    return backlog > 0n ? backlog : 0n;
  };
  const delayMs = (state: Level | undefined, atMs: number) => Number((backlogAt(state, atMs) + pace - 1n) / pace);
  return {
    quota: capacity,
    spanMs: Number((full + pace - 1n) / pace),
    ownMs: (state) => state.timeMs,
    counts: (state, atMs) => backlogAt(state, atMs) > 0n,
    fits: (state, atMs, cost) => backlogAt(state, atMs) + BigInt(cost) * unit <= full && delayMs(state, atMs) <= maxDelayMs,
    take: (state, atMs, cost) => ({ parts: backlogAt(state, atMs) + BigInt(cost) * unit, timeMs: atMs }),
    delayMs,
    give: (state) => [state, 0],
  };
}

/** The definition of a policy's algorithm. */
export function rulesOf(policy: Policy): Rules<unknown> {
  switch (policy.algorithm) {
    case "fixed-window":
      return fixedWindowRules(policy.limit, policy.windowMs);
    case "sliding-window-log":
      return logRules(policy);
    case "sliding-window-counter":
      return counterRules(policy);
    case "leaky-bucket":
      return queueRules(policy);
    case "gcra":
      return smoothRules(policy.burst, policy.limit, policy.windowMs);
    case "token-bucket":
      if (policy.style === "interval") return intervalRules(policy);
      return smoothRules(policy.capacity, policy.refill, policy.everyMs);
  }
}
