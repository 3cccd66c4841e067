import type { Decision, Inspection, Limit } from "@floodgate/core/store";
import * as fc from "fast-check";

/** A list with some items replaced. */
export function spliced<T>(list: readonly T[], at: number, count: number, ...by: readonly T[]): T[] {
  return [...list.slice(0, at), ...by, ...list.slice(at + count)];
}

/** Values that are invalid in all or most fields of a reply. */
export const strange = fc.constantFrom<unknown>(
  ...[-5, 4e9, 1e8, -1, -2, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, -(2 ** 63), 1e300, 5n, -5n, 2n ** 70n],
  ...[
    "",
    " ",
    "0x10",
    "1e3",
    "-3",
    "99999999999999999999",
    "ERR \u001b[31m",
    null,
    undefined,
    true,
    {},
    [],
    [5],
    [[]],
    Buffer.from("7"),
    Buffer.from([0xff]),
  ],
);
/** One change to a reply. */
export type Mutation = {
  readonly kind: "drop" | "twice" | "cut" | "insert" | "replace" | "all";
  readonly at: number;
  readonly by: unknown;
};
export const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom("drop", "twice", "cut", "insert", "replace", "all"),
  at: fc.nat(),
  by: strange,
});

/** A reply after a change. */
export function mutated(reply: readonly unknown[], { kind, at, by }: Mutation): unknown {
  const place = at % reply.length;
  if (kind === "all") return by;
  if (kind === "cut") return reply.slice(0, place);
  if (kind === "drop") return spliced(reply, place, 1);
  if (kind === "twice") return spliced(reply, place, 0, reply[place]);
  return spliced(reply, place, kind === "replace" ? 1 : 0, by);
}

/** Whether a store's answer is within the bounds of its limit. */
export function isSound(answer: unknown, limit: Limit): boolean {
  if (answer === undefined || typeof answer === "number") return answer === undefined || Math.abs(answer) <= 12;
  if ("state" in (answer as object)) return isSoundInspection(answer as Inspection, limit);
  const { allowed, remaining, retryAfterMs, resetAfterMs, delayMs, atMs } = answer as Decision;
  const isWait = (ms: number): boolean => Number.isSafeInteger(ms) && ms >= 0;
  return (
    Number.isSafeInteger(remaining) &&
    remaining >= 0 &&
    remaining <= limit.policy.quota &&
    (isWait(retryAfterMs) || retryAfterMs === Number.POSITIVE_INFINITY) &&
    (allowed || retryAfterMs > 0) &&
    [resetAfterMs, delayMs, atMs].every(isWait) &&
    delayMs <= limit.policy.spanMs
  );
}

function isSoundInspection({ decision, state, block, ban }: Inspection, limit: Limit): boolean {
  // JSON has no NaN and no Infinity: both would be null.
  return isSound(decision, limit) && !/null/.test(JSON.stringify([state, block ?? {}, ban ?? {}]));
}
