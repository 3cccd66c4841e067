import type { Decision } from "../decide/decision.js";
import type { Body } from "../responses/body.js";
import type { Header } from "../responses/headers.js";
import type { Afterwards } from "./afterwards.js";
import type { CheckedRule } from "./named-checks.js";

/** What an adapter does with a request. */
export interface Outcome {
  readonly action: "pass" | "reject";
  readonly headers: readonly Header[];
  /** The most restrictive decision; undefined if no limit applied. */
  readonly decision: Decision | undefined;
  /** How long to hold a request that passes, in milliseconds. */
  readonly delayMs: number;
  /** The status of a rejection, and its body unless `onLimited` answers. */
  readonly status: number;
  readonly body: Body;
  /** What the rules asked of the store, and the decision of each. Both are empty if no rule counted the request. */
  readonly checks: readonly CheckedRule[];
  readonly decisions: readonly Decision[];
  /** Call it once the response is over. Undefined if nothing can be refunded or settled. */
  readonly sent: Afterwards | undefined;
}

export const noBody: Body = { text: "", contentType: "text/plain" };
const nothing: readonly never[] = [];
/** Of a request that no limit applies to. */
export const unlimited: Outcome = {
  action: "pass",
  headers: [],
  decision: undefined,
  delayMs: 0,
  status: 200,
  body: noBody,
  checks: nothing,
  decisions: nothing,
  sent: undefined,
};

/** A rejection is no answer to keep. */
export const noStore: Header = { name: "Cache-Control", value: "no-store", list: false };

export function rejection(
  status: number,
  headers: readonly Header[],
  body: Body,
  decision: Decision | undefined,
  checks: Outcome["checks"] = nothing,
  decisions: Outcome["decisions"] = nothing,
): Outcome {
  return { action: "reject", headers, decision, delayMs: 0, status, body, checks, decisions, sent: undefined };
}
