import { FloodgateError } from "../support/errors.js";
import type { CompiledRule } from "./compiled-rule.js";

/**
 * Checks what a rule for descriptors cannot have: Envoy asks once, does not hold the request, and does not tell how it ended.
 * @throws FloodgateError `FLOODGATE_CONFLICTING_OPTIONS`
 */
export function checkForDescriptors<Req>(where: string, { fixed, plans, settle }: CompiledRule<Req>): void {
  const limits = [{ at: ["policy"], limit: fixed }, ...[...(plans ?? [])].map(([plan, limit]) => ({ at: ["plans", plan], limit }))];
  const queue = limits.find(({ limit }) => limit?.policy.algorithm === "leaky-bucket");
  if (queue !== undefined) {
    throw new FloodgateError(
      "FLOODGATE_CONFLICTING_OPTIONS",
      `${where}: \`${queue.at.join(".")}\` is a leaky-bucket, which holds requests, but Envoy's rate limit service only allows or rejects. Write algorithm: gcra or token-bucket.`,
      { at: queue.at },
    );
  }
  if (settle !== undefined) {
    throw new FloodgateError(
      "FLOODGATE_CONFLICTING_OPTIONS",
      `${where}: \`settle\` needs the response, which Envoy's rate limit service never sees. Leave it out.`,
      { at: ["settle"] },
    );
  }
}
