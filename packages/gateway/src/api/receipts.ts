import type { Decision, Limiter, LimiterKey } from "@floodgate/core";
import type { CheckedRule } from "@floodgate/core/adapter";
import { keyOfText } from "@floodgate/core/rules";
import { Problem } from "./problems.js";

/** One limit of a receipt: the rule, the key, and core's receipt, which is signed over both. */
export type ReceiptPart = readonly [rule: string, key: LimiterKey, receipt: string];

/** What a check has decided of one rule. */
export interface Decided {
  readonly check: CheckedRule;
  readonly decision: Decision;
  /** The key as the caller gave it. Undefined if the rules read it from a request. */
  readonly key: LimiterKey | undefined;
}

const mark = "fb1.";

/** One receipt for all charges of a check. Returns null if nothing was charged. */
export function issueReceipt(limiters: ReadonlyMap<string, Limiter>, all: readonly Decided[]): string | null {
  const parts = all.flatMap(({ check, decision, key = keyOfText(check.key) }): ReceiptPart[] => {
    const limiter = limiters.get(check.rule.name);
    // The hash of a long key does not lead back to the key.
    return !decision.allowed || limiter === undefined || key === undefined ? [] : [[check.rule.name, key, limiter.receipt(decision)]];
  });
  return parts.length === 0 ? null : mark + Buffer.from(JSON.stringify(parts)).toString("base64url");
}

/** @throws Problem if the text is no receipt of `issueReceipt`. Whether it was altered shows when each part is redeemed. */
export function parseReceipt(text: string): readonly ReceiptPart[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text.slice(mark.length), "base64url").toString());
    if (Array.isArray(parts) && parts.length > 0 && parts.length <= maxParts && parts.every(isPart)) return parts;
  } catch {
    // Not JSON.
  }
  throw new Problem(
    400,
    "FLOODGATE_INVALID_RECEIPT",
    "This is no receipt of /v1/check, or it was altered. Pass the field `receipt` of its answer.",
  );
}

const maxParts = 1000;

function isPart(part: unknown): part is ReceiptPart {
  return Array.isArray(part) && part.length === 3 && typeof part[0] === "string" && typeof part[2] === "string";
}
