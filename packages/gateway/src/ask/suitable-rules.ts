import { FloodgateError } from "@floodgate/core";
import type { PlainRule, RuleSet } from "@floodgate/core/rules";

/**
 * Refuses rules that a gateway's ask cannot keep: it cannot wait, and it never learns how the request ended.
 * @throws FloodgateError `FLOODGATE_INVALID_RULES`
 */
export function checkSuitable({ rules }: RuleSet): void {
  rules.forEach((rule, i) => {
    if (rule.policy?.algorithm === "leaky-bucket" && rule.mode !== "shadow") {
      throw unsuitable(
        rule,
        ["rules", i, "policy"],
        "holds requests (leaky-bucket), but a gateway that asks cannot hold them. Write algorithm: token-bucket. Or use floodgate gateway, which holds requests, or the JSON API alone (presets: []), which answers delayMs",
      );
    }
    if (rule.settle !== undefined) {
      throw unsuitable(
        rule,
        ["rules", i, "settle"],
        "has `settle`, but a gateway that asks never tells how a request ended. Remove `settle`. To settle, ask the JSON API: POST /v1/check, then POST /v1/settle",
      );
    }
  });
}

function unsuitable({ name }: PlainRule, at: (string | number)[], problem: string): FloodgateError {
  return new FloodgateError("FLOODGATE_INVALID_RULES", `The rule ${JSON.stringify(name)} ${problem}.`, { at });
}
