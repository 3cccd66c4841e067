import type { PlainRule } from "@floodgate/core/rules";
import type { Io } from "./io.js";
import { harmless } from "./output/terminal.js";
import { didYouMean } from "./output/words.js";

/** Notes that no rule names this plan. It is not an error: an app may have other plans. */
export function notePlan(io: Io, plan: string | undefined, rules: readonly PlainRule[]): void {
  const known = [...new Set(rules.flatMap(({ plans = {} }) => Object.keys(plans)))];
  if (plan === undefined || known.includes(plan)) return;
  const [only, ...others] = rules.map(({ name }) => JSON.stringify(name));
  const missing = `${others.length === 0 ? `${only} has` : "the rules have"} no plan ${JSON.stringify(plan)}.${didYouMean(plan, known)}`;
  const plans = `Plans: ${known.length === 0 ? "none" : known.join(", ")}.`;
  io.err(`${harmless(`floodgate: ${missing} ${plans} Requests of other plans have a rule's own policy, which is shown.`)}\n`);
}
