import { type Decision, type ErrorCode, FloodgateError } from "@floodgate/core";

/** @throws Error if a decision violates an invariant. */
export function checkDecision(decision: Decision): void {
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs, delayMs, cost, atMs, degraded } = decision;
  const never = retryAfterMs === Number.POSITIVE_INFINITY;
  const sound =
    isCount(remaining) &&
    remaining <= limit &&
    never === cost > limit &&
    (never || isCount(retryAfterMs)) &&
    isCount(resetAfterMs) &&
    isCount(delayMs) &&
    delayMs < 2 ** 31 &&
    Number.isSafeInteger(atMs) &&
    (allowed || (retryAfterMs > 0 && delayMs === 0)) &&
    !degraded;
  if (!sound) throw new Error(`An unsound decision: ${shown(decision)}`);
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function shown(decision: Decision): string {
  return JSON.stringify(decision, (_, value) => (typeof value === "number" && !Number.isFinite(value) ? String(value) : value));
}

/**
 * Accepts coded errors: any, or those with one of these codes.
 * @throws every other error.
 */
export function unlessRefused(error: unknown, ...codes: readonly ErrorCode[]): void {
  if (error instanceof FloodgateError && (codes.length === 0 || codes.includes(error.code))) return;
  throw error;
}
