import type { StateView } from "@floodgate/core";
import type {
  CalendarWindowPolicy,
  ConcurrencyPolicy,
  LeakyBucketPolicy,
  SlidingWindowCounterPolicy,
  SlidingWindowLogPolicy,
  TokenBucketPolicy,
} from "@floodgate/core/store";

/** The charge that a refund or settlement changes. */
export interface Charge {
  readonly atMs: number;
  readonly cost: number;
}

/**
 * One algorithm, written straight from its definition: which costs fit, and the state after a charge, a refund or a debt.
 * `atMs` is never before the state's own time. `Model` finds waits, `remaining` and expiry by trial.
 */
export interface Rules<S> {
  readonly quota: number;
  readonly spanMs: number;
  /** The longest wait of an accepted request. Left out: 0, no request waits. */
  readonly maxDelayMs?: number;
  /** The state's own time. */
  ownMs(state: S): number;
  /** Whether the state still matters at that time. */
  counts(state: S, atMs: number): boolean;
  fits(state: S | undefined, atMs: number, cost: number): boolean;
  take(state: S | undefined, atMs: number, cost: number): S;
  /** The state after a rejection, for algorithms that record rejections. */
  reject?(state: S | undefined, atMs: number, cost: number): S;
  /** The wait of an accepted request. */
  delayMs?(state: S, atMs: number): number;
  /**
   * The state after a charge was reduced to its real cost as far as it still counts, and the units given back.
   * @param of the state's plan: its quota, and the amount that each refill since the charge may have added.
   */
  give(
    state: S,
    atMs: number,
    charge: Charge,
    cost: number,
    of: { readonly quota: number; readonly amount: number },
  ): [next: S, units: number];
  /**
   * The state after a charge was raised by `more` units; undefined if the charge no longer counts. A charge of 0 units is a new one, at
   * `atMs`.
   * @param quota of the state's plan, for buckets.
   */
  owe(state: S | undefined, atMs: number, charge: Charge, more: number, quota: number): S | undefined;
  /** What an inspection shows of a state that counts. */
  view(state: S, atMs: number): StateView;
}

/** @param windowOf the start and the end of the window at a time. */
function windowRules(limit: number, spanMs: number, windowOf: (atMs: number) => [startMs: number, endMs: number]): Rules<WindowState> {
  const startOf = (atMs: number) => windowOf(atMs)[0];
  return {
    quota: limit,
    spanMs,
    ownMs: (state) => state.windowAtMs,
    counts: (state, atMs) => state.units > 0 && startOf(atMs) === state.windowAtMs,
    fits: (state, _atMs, cost) => (state?.units ?? 0) + cost <= limit,
    take: (state, atMs, cost) => ({ windowAtMs: startOf(atMs), units: (state?.units ?? 0) + cost }),
    give(state, _atMs, charge, cost) {
      const units = startOf(charge.atMs) === state.windowAtMs ? Math.min(charge.cost - cost, state.units) : 0;
      return [{ ...state, units: state.units - units }, units];
    },
    owe(state, atMs, charge, more) {
      if (charge.cost === 0) return { windowAtMs: startOf(atMs), units: (state?.units ?? 0) + more };
      if (state === undefined || startOf(charge.atMs) !== state.windowAtMs) return undefined;
      return { ...state, units: state.units + more };
    },
    view({ units, windowAtMs }) {
      const [startMs, endMs] = windowOf(windowAtMs);
      return { kind: "windows", windowMs: endMs - startMs, limit, windows: [{ startMs, endMs, count: units, weight: 1 }] };
    },
  };
}

interface WindowState {
  readonly units: number;
  readonly windowAtMs: number;
}

export function fixedWindowRules(limit: number, windowMs: number): Rules<WindowState> {
  return windowRules(limit, windowMs, (atMs) => {
    const startMs = Math.floor(atMs / windowMs) * windowMs;
    return [startMs, startMs + windowMs];
  });
}

/** The number of the calendar window that holds a time, and the start of the window with a number, in a zone without clock changes. */
export function calendarOf({ per, startsOn, timeZone }: CalendarWindowPolicy): { of(atMs: number): number; startOf(n: number): number } {
  // `Etc/GMT-5` is five hours ahead of UTC.
  const aheadMs = timeZone === "UTC" ? 0 : -Number(timeZone.slice("Etc/GMT".length)) * 3_600_000;
  const lengths = { hour: 3_600_000, day: 86_400_000, week: 604_800_000 } as const;
  if (per === "hour" || per === "day" || per === "week") {
    // The first Monday of the epoch was its fifth day.
    const firstMs = per === "week" ? (4 + days.indexOf(String(startsOn))) * 86_400_000 : 0;
    return {
      of: (atMs) => Math.floor((atMs + aheadMs - firstMs) / lengths[per]),
      startOf: (n) => n * lengths[per] + firstMs - aheadMs,
    };
  }
  const monthsOf = per === "year" ? 12 : 1;
  const startOf = (n: number) => {
    const lastDay = new Date(Date.UTC(0, n * monthsOf + 1, 0)).getUTCDate();
    return Date.UTC(0, n * monthsOf, Math.min(per === "year" ? 1 : Number(startsOn), lastDay)) - aheadMs;
  };
  return {
    of(atMs) {
      const date = new Date(atMs + aheadMs);
      const n = Math.floor(((date.getUTCFullYear() - 1900) * 12 + date.getUTCMonth()) / monthsOf);
      return atMs < startOf(n) ? n - 1 : n;
    },
    startOf,
  };
}

const days = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

export function calendarWindowRules(policy: CalendarWindowPolicy): Rules<WindowState> {
  const calendar = calendarOf(policy);
  return windowRules(policy.limit, policy.spanMs, (atMs) => {
    const n = calendar.of(atMs);
    return [calendar.startOf(n), calendar.startOf(n + 1)];
  });
}

/** The state holds one time per unit. Debts, or an earlier plan with a higher limit, can make it longer than the limit. */
export function logRules({
  limit,
  windowMs,
  countRejected,
}: Pick<SlidingWindowLogPolicy, "limit" | "windowMs" | "countRejected">): Rules<readonly number[]> {
  const inWindow = (times: readonly number[] | undefined, atMs: number) => (times ?? []).filter((time) => time > atMs - windowMs);
  const several = (atMs: number, units: number) => Array<number>(units).fill(atMs);
  const rules: Rules<readonly number[]> = {
    quota: limit,
    spanMs: windowMs,
    ownMs: (times) => Math.max(...times),
    counts: (times, atMs) => inWindow(times, atMs).length > 0,
    fits: (times, atMs, cost) => inWindow(times, atMs).length + cost <= limit,
    take: (times, atMs, cost) => [...inWindow(times, atMs), ...several(atMs, cost)],
    give(times, atMs, charge, cost) {
      const still = inWindow(times, atMs).filter((time) => time === charge.atMs).length;
      const units = Math.min(charge.cost - cost, still);
      const first = times.indexOf(charge.atMs);
      return [times.filter((_, i) => i < first || i >= first + units), units];
    },
    owe(times, atMs, charge, more) {
      if (charge.cost === 0) return [...inWindow(times, atMs), ...several(atMs, more)];
      // If logged rejections have pushed the charge out, its debt counts from the first rejection.
      const countsFromMs = charge.atMs > atMs - windowMs ? times?.find((time) => time >= charge.atMs) : undefined;
      return countsFromMs === undefined ? undefined : [...(times ?? []), ...several(countsFromMs, more)].sort((a, b) => a - b);
    },
    view(times, atMs) {
      const byTime = new Map<number, number>();
      const kept = inWindow(times, atMs);
      for (const time of kept) byTime.set(time, (byTime.get(time) ?? 0) + 1);
      return { kind: "log", windowMs, limit, units: [...byTime].map(([atMs, units]) => ({ atMs, units })), total: kept.length };
    },
  };
  if (countRejected) {
    // A log that is already longer than the limit keeps its length.
    rules.reject = (times, atMs, cost) => {
      const before = inWindow(times, atMs);
      return [...before, ...several(atMs, Math.min(cost, limit))].slice(-Math.max(limit, before.length));
    };
  }
  return rules;
}

/** The slots of requests in flight are a log whose window is the time after which a slot comes back by itself. Nobody owes a slot. */
export function slotRules({ limit, holdMs }: ConcurrencyPolicy): Rules<readonly number[]> {
  return {
    ...logRules({ limit, windowMs: holdMs, countRejected: false }),
    owe: () => undefined,
    view(times, atMs) {
      const byEnd = new Map<number, number>();
      for (const time of times) if (time > atMs - holdMs) byEnd.set(time + holdMs, (byEnd.get(time + holdMs) ?? 0) + 1);
      const held = [...byEnd].map(([untilMs, units]) => ({ untilMs, units }));
      return { kind: "held", limit, held, total: held.reduce((sum, { units }) => sum + units, 0), used: { kind: "empty" } };
    },
  };
}

/** Units above the limit weigh in full if they are a debt. Otherwise an earlier, higher limit allowed them, and they are cut. */
interface Count {
  readonly units: number;
  readonly debt: boolean;
}

const unitsOf = (count: Count | undefined, limit: number): number =>
  count === undefined ? 0 : count.debt ? count.units : Math.min(count.units, limit);

/** The state maps the start of each charged sub-window to its count. */
export function counterRules({ limit, windowMs, buckets, strict }: SlidingWindowCounterPolicy): Rules<ReadonlyMap<number, Count>> {
  const widthMs = windowMs / buckets;
  const startOf = (atMs: number) => Math.floor(atMs / widthMs) * widthMs;
  const overlaps = (startMs: number, atMs: number) => startMs + widthMs > atMs - windowMs;
  return {
    quota: limit,
    spanMs: windowMs,
    ownMs: (counts) => Math.max(...counts.keys()),
    counts: (counts, atMs) => [...counts].some(([startMs, { units }]) => units > 0 && overlaps(startMs, atMs)),
    fits(counts, atMs, cost) {
      const currentMs = startOf(atMs);
      let newer = 0;
      for (const [startMs, count] of counts ?? []) if (startMs > currentMs - windowMs) newer += unitsOf(count, limit);
      const oldest = BigInt(unitsOf(counts?.get(currentMs - windowMs), limit));
      const weighted = strict ? oldest : (oldest * BigInt(widthMs - (atMs - currentMs))) / BigInt(widthMs);
      return Number(weighted) + newer + cost <= limit;
    },
    take(counts, atMs, cost) {
      const next = new Map([...(counts ?? [])].filter(([startMs]) => overlaps(startMs, atMs)));
      const before = next.get(startOf(atMs));
      return next.set(startOf(atMs), { units: unitsOf(before, limit) + cost, debt: before?.debt ?? false });
    },
    give(counts, atMs, charge, cost) {
      const startMs = startOf(charge.atMs);
      const before = overlaps(startMs, atMs) ? counts.get(startMs) : undefined;
      const units = Math.min(charge.cost - cost, before?.units ?? 0);
      if (before === undefined || units === 0) return [counts, 0];
      const left = before.units - units;
      const next = new Map(counts).set(startMs, { units: left, debt: before.debt && left > 0 });
      return [next, units];
    },
    owe(counts, atMs, charge, more) {
      const startMs = startOf(charge.atMs);
      const before = overlaps(startMs, atMs) ? counts?.get(startMs) : undefined;
      if (charge.cost > 0 && (before === undefined || before.units === 0)) return undefined;
      const units = (before?.units ?? 0) + more;
      return new Map(counts).set(startMs, { units, debt: before?.debt || units > limit });
    },
    view(counts, atMs) {
      const windows = [...counts]
        .filter(([startMs, { units }]) => units > 0 && overlaps(startMs, atMs))
        .sort(([a], [b]) => a - b)
        .map(([startMs, count]) => {
          const endMs = startMs + widthMs;
          // The window ends with the current sub-window's elapsed part, and the oldest one loses as much.
          const leftMs = !strict && startMs < startOf(atMs) - windowMs + widthMs ? endMs - (atMs - windowMs) : widthMs;
          return { startMs, endMs, count: unitsOf(count, limit), weight: leftMs / widthMs };
        });
      return { kind: "windows", windowMs, limit, windows };
    },
  };
}

const dividedUp = (a: bigint, b: bigint): number => Number((a + b - 1n) / b);
/** The nearest number. Both are reduced first, because a number holds whole ones only up to 2^53. */
function ratio(a: bigint, b: bigint): number {
  let [divisor, rest] = [b, a % b];
  while (rest !== 0n) [divisor, rest] = [rest, divisor % rest];
  return Number(a / divisor) / Number(b / divisor);
}
const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/**
 * The refund for a lower real cost: what is left of the charge after `cameIn`, less what would be left of the real cost.
 * A charge above the capacity (an earlier plan allowed it) counts as the capacity.
 */
function dueOf(charged: number, cost: number, capacity: number, unit: bigint, cameIn: bigint): bigint {
  const over = Math.max(0, charged - capacity);
  const counts = (units: number): bigint => {
    const left = BigInt(Math.max(0, units - over)) * unit - cameIn;
    return left > 0n ? left : 0n;
  };
  return counts(charged) - counts(cost);
}

/** `parts` is the level at `timeMs`. A unit is `everyMs` parts and `amount` parts flow each millisecond, so there are no fractions. */
interface Level {
  readonly parts: bigint;
  readonly timeMs: number;
}

export function smoothRules(capacity: number, amount: number, everyMs: number): Rules<Level> {
  const unit = BigInt(everyMs);
  const full = BigInt(capacity) * unit;
  const levelAt = (state: Level | undefined, atMs: number) => {
    const level = state === undefined ? full : smaller(state.parts, full) + BigInt(atMs - state.timeMs) * BigInt(amount);
    return smaller(level, full);
  };
  const take = (state: Level | undefined, atMs: number, cost: number) => ({
    parts: levelAt(state, atMs) - BigInt(cost) * unit,
    timeMs: atMs,
  });
  return {
    quota: capacity,
    spanMs: dividedUp(full, BigInt(amount)),
    ownMs: (state) => state.timeMs,
    counts: (state, atMs) => levelAt(state, atMs) < full,
    fits: (state, atMs, cost) => BigInt(cost) * unit <= levelAt(state, atMs),
    take,
    give(state, atMs, charge, cost, of) {
      // A charge later than the state's last one belongs to a state that a clock jump made void.
      if (charge.atMs > state.timeMs) return [state, 0];
      const due = dueOf(charge.cost, cost, capacity, unit, BigInt(atMs - charge.atMs) * BigInt(of.amount));
      const missing = full - levelAt(state, atMs);
      const back = smaller(smaller(due, missing), BigInt(of.quota) * unit - state.parts);
      return [{ ...state, parts: state.parts + back }, Number(back) / everyMs];
    },
    owe(state, atMs, _charge, more, quota) {
      if (state === undefined) return take(state, atMs, more);
      const level = smaller(state.parts + BigInt(atMs - state.timeMs) * BigInt(amount), BigInt(quota) * unit);
      return { parts: level - BigInt(more) * unit, timeMs: atMs };
    },
    view: (state, atMs) => ({ kind: "bucket", level: ratio(levelAt(state, atMs), unit), capacity }),
  };
}

export function intervalRules({ capacity, refill, everyMs }: TokenBucketPolicy): Rules<{ tokens: number; refilledMs: number }> {
  type State = { tokens: number; refilledMs: number };
  const refilled = (state: State | undefined, atMs: number): State => {
    if (state === undefined) return { tokens: capacity, refilledMs: atMs };
    const times = Math.floor((atMs - state.refilledMs) / everyMs);
    const tokens = Math.min(capacity, state.tokens + times * refill);
    return { tokens, refilledMs: state.refilledMs + times * everyMs };
  };
  const take = (state: State | undefined, atMs: number, cost: number): State => {
    const now = refilled(state, atMs);
    return { ...now, tokens: now.tokens - cost };
  };
  return {
    quota: capacity,
    spanMs: Math.ceil(capacity / refill) * everyMs,
    ownMs: (state) => state.refilledMs,
    counts: (state, atMs) => refilled(state, atMs).tokens < capacity,
    fits: (state, atMs, cost) => cost <= refilled(state, atMs).tokens,
    take,
    give(state, atMs, charge, cost, of) {
      // A charge later than the next refill belongs to a state that a clock jump made void.
      if (charge.atMs >= state.refilledMs + everyMs) return [state, 0];
      const now = refilled(state, atMs);
      const refills = Math.max(0, Math.ceil((now.refilledMs - charge.atMs) / everyMs));
      const due = Number(dueOf(charge.cost, cost, capacity, 1n, BigInt(refills) * BigInt(of.amount)));
      const back = Math.min(due, capacity - now.tokens, of.quota - state.tokens);
      return [{ ...state, tokens: state.tokens + back }, back];
    },
    owe(state, atMs, _charge, more, quota) {
      if (state === undefined) return take(state, atMs, more);
      const times = Math.floor((atMs - state.refilledMs) / everyMs);
      return { tokens: Math.min(state.tokens + times * refill, quota) - more, refilledMs: state.refilledMs + times * everyMs };
    },
    view(state, atMs) {
      const { tokens, refilledMs } = refilled(state, atMs);
      return { kind: "bucket", level: tokens, capacity, refillsAtMs: refilledMs + everyMs };
    },
  };
}

export function queueRules({ capacity, leak, everyMs, maxDelayMs }: LeakyBucketPolicy): Rules<Level> {
  const unit = BigInt(everyMs);
  const full = BigInt(capacity) * unit;
  const pace = BigInt(leak);
  const backlogAt = (state: Level | undefined, atMs: number) => {
    if (state === undefined) return 0n;
    const backlog = state.parts - BigInt(atMs - state.timeMs) * pace;
    return backlog > 0n ? backlog : 0n;
  };
  return {
    quota: capacity,
    spanMs: dividedUp(full, pace),
    maxDelayMs,
    ownMs: (state) => state.timeMs,
    counts: (state, atMs) => backlogAt(state, atMs) > 0n,
    // A larger plan may have queued more than this one holds: then the queue is full until it drains.
    fits: (state, atMs, cost) => backlogAt(state, atMs) + BigInt(cost) * unit <= full,
    take: (state, atMs, cost) => ({ parts: backlogAt(state, atMs) + BigInt(cost) * unit, timeMs: atMs }),
    delayMs: (state, atMs) => dividedUp(backlogAt(state, atMs), pace),
    give: (state) => [state, 0],
    owe: (state, atMs, _charge, more) => ({ parts: backlogAt(state, atMs) + BigInt(more) * unit, timeMs: atMs }),
    view(state, atMs) {
      const backlog = backlogAt(state, atMs);
      return { kind: "queue", length: ratio(backlog, unit), capacity, drainedAtMs: atMs + dividedUp(backlog, pace) };
    },
  };
}
