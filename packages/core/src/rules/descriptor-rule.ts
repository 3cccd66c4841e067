import type { Limit } from "../decide/limit.js";
import { FloodgateError } from "../support/errors.js";
import { compileDescriptorMatch, type DescriptorMatch } from "./descriptor-match.js";
import type { Match } from "./match.js";

/** The parts of a compiled rule that descriptors restrict. */
interface CheckedRule {
  readonly fixed: Limit | undefined;
  readonly plans: ReadonlyMap<string, Limit> | undefined;
  readonly options: { readonly hold?: unknown; readonly settle?: unknown; readonly refundWhen?: unknown };
}

/** What rules need to count descriptors of Envoy's rate limit service. Apps do without it. */
export interface DescriptorRules {
  /** @param keyed the entries that the rule counts by. */
  compileMatch(where: string, match: Match, keyed: readonly string[]): DescriptorMatch;
  checkRule(where: string, rule: CheckedRule): void;
}

/**
 * Checks what a rule for descriptors cannot have: Envoy asks once, does not hold the request, and does not tell how it ended.
 * @throws FloodgateError `FLOODGATE_CONFLICTING_OPTIONS`
 */
function checkForDescriptors(where: string, { fixed, plans, options }: CheckedRule): void {
  const limits = [{ at: ["policy"], limit: fixed }, ...[...(plans ?? [])].map(([plan, limit]) => ({ at: ["plans", plan], limit }))];
  const queue = limits.find(({ limit }) => limit?.policy.algorithm === "leaky-bucket");
  if (queue !== undefined) {
    throw new FloodgateError(
      "FLOODGATE_CONFLICTING_OPTIONS",
      `${where}: \`${queue.at.join(".")}\` is a leaky-bucket, which holds requests, but Envoy's rate limit service only allows or rejects. Write algorithm: gcra or token-bucket.`,
      { at: queue.at },
    );
  }
  const held = limits.find(({ limit }) => limit?.policy.holdMs !== undefined);
  if (held !== undefined) {
    throw new FloodgateError(
      "FLOODGATE_CONFLICTING_OPTIONS",
      `${where}: it holds units until a request has ended (concurrency, hold), but Envoy's rate limit service never tells when that is. Use another policy without \`hold\`, or floodgate gateway.`,
      { at: options.hold === undefined ? held.at : ["hold"] },
    );
  }
  for (const option of ["settle", "refundWhen"] as const) {
    if (options[option] === undefined) continue;
    throw new FloodgateError(
      "FLOODGATE_CONFLICTING_OPTIONS",
      `${where}: \`${option}\` needs the response, which Envoy's rate limit service never sees. Leave it out.`,
      { at: [option] },
    );
  }
}

export const descriptorRules: DescriptorRules = { compileMatch: compileDescriptorMatch, checkRule: checkForDescriptors };
