import { FloodgateError } from "@floodgate/core";
import type { PlainRule, RuleSet } from "@floodgate/core/rules";
import type { Command, Settings } from "../config/settings.js";
import { keyNames } from "../service/keys.js";

/**
 * Refuses rules that a command cannot keep. It knows no routes. A gateway that asks cannot hold a request, does not tell when it has ended, and
 * shows no response.
 * @throws FloodgateError `FLOODGATE_INVALID_RULES` with the path of the rule in `at`.
 */
export function checkRules({ rules }: RuleSet, command: Command, { presets, apiListen }: Settings): void {
  const isServe = command === "serve";
  const areAsked = isServe && presets?.length !== 0;
  const seesNoResponse = areAsked || (isServe && apiListen !== undefined);
  rules.forEach((rule, i) => {
    const refuse = (at: readonly string[] | undefined, problem: string): void => {
      if (at === undefined) return;
      const message = `The rule ${JSON.stringify(rule.name)} ${problem}.`;
      throw new FloodgateError("FLOODGATE_INVALID_RULES", message, { at: ["rules", i, ...at] });
    };
    if (areAsked || !isServe) {
      refuse(
        rule.match?.path === undefined && keyNames(rule.key).includes("route") ? ["key"] : undefined,
        "counts by route, but a gateway knows no routes. Write the path of the route: match: { path: /users/:id }",
      );
    }
    if (areAsked) {
      refuse(
        rule.mode === "shadow" ? undefined : placeOf(rule, "leaky-bucket"),
        "holds requests (leaky-bucket), but a gateway that asks cannot hold them. Write algorithm: token-bucket. Or use floodgate gateway, which holds requests, or the JSON API alone (presets: []), which answers delayMs",
      );
      refuse(
        rule.hold === undefined ? placeOf(rule, "concurrency") : ["hold"],
        "holds units until a request has ended (concurrency, hold), but a gateway that asks never says when. Use floodgate gateway, which sees each end, or the JSON API alone (presets: []): POST /v1/check, /v1/renew while it runs, then /v1/refund",
      );
    }
    if (!seesNoResponse) return;
    for (const [option, path] of [
      ["settle", "settle"],
      ["refundWhen", "refund"],
    ] as const) {
      refuse(
        rule[option] === undefined ? undefined : [option],
        `has \`${option}\`, but no response is seen here: this server is only asked about requests. Remove \`${option}\`. To ${path}, ask the JSON API: POST /v1/check, then POST /v1/${path}`,
      );
    }
  });
}

/** Where a rule uses an algorithm: in its policy or one of its plans. */
function placeOf({ policy, plans = {} }: PlainRule, algorithm: string): readonly string[] | undefined {
  const uses = (own: object | undefined): boolean => own !== undefined && "algorithm" in own && own.algorithm === algorithm;
  if (uses(policy)) return ["policy"];
  const plan = Object.keys(plans).find((name) => uses(plans[name]));
  return plan === undefined ? undefined : ["plans", plan];
}
