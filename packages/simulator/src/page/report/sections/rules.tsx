import { count, duration } from "@floodgate/pages/format";
import { Card, foreign } from "@floodgate/pages/view/elements";
import type { VNode } from "preact";
import type { Choice, ReportRule } from "../model.js";
import { percent } from "../words.js";
import { bar } from "./section.js";

const titles = { rules: "Rules", compare: "Policies side by side", suggest: "Suggested rules" };

/** All rules with what they did. One is chosen, and the sections below are about that one. */
export const Rules = ({ choice }: { readonly choice: Choice }): VNode => (
  <Card id="rules" title={titles[choice.data.task]}>
    <p class="lead quiet">Choose one: what stands below is about it.</p>
    <div class="rules" role="radiogroup" aria-labelledby="rules-title">
      {choice.data.rules.map((rule, i) => row(choice, rule, i))}
    </div>
  </Card>
);

function row({ data, rule: chosen, chooseRule }: Choice, rule: ReportRule, i: number): VNode {
  const isTrial = data.task === "compare";
  return (
    <label class="rule">
      <input type="radio" name="rule" checked={rule === chosen} onChange={() => chooseRule(i)} />
      <span class="name">
        {foreign(isTrial ? rule.numbers : rule.name)}
        {rule.mode === "shadow" && data.task === "rules" && <span class="tag">shadow</span>}
        <small>{isTrial ? rule.algorithm : `${rule.numbers}, ${rule.algorithm}`}</small>
      </span>
      <span class="quiet">
        <b>{count(rule.limited)}</b> requests limited ({percent(rule.limited, rule.requests)})
        {bar({ track: 1, limited: rule.limited === 0 ? 0 : Math.max(0.01, rule.limited / rule.requests) })}
      </span>
      <span class="quiet">
        <b>{count(rule.clientsLimited)}</b> clients ever limited ({percent(rule.clientsLimited, rule.clients)})
      </span>
      <span class="quiet">
        <b>{rule.limited === 0 ? "none" : duration(rule.longestLockoutMs)}</b> longest lock-out
      </span>
    </label>
  );
}
