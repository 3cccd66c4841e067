import { foreign, h } from "@floodgate/pages/dom";
import { count, duration } from "@floodgate/pages/format";
import type { Choice, ReportRule } from "../model.js";
import { percent } from "../words.js";
import { bar, section } from "./section.js";

/** All rules with what they did. One is chosen, and the sections below are about that one. */
export function rulesSection(choice: Choice): HTMLElement | undefined {
  const { rules, task } = choice.data;
  if (rules.length < 2) return undefined;
  const rows = rules.map((rule, i) => row(choice, rule, i));
  const heading = { rules: "Rules", compare: "Policies side by side", suggest: "Suggested rules" }[task];
  return section(
    "rules",
    heading,
    h("p", { class: "lead quiet" }, "Choose one: what stands below is about it."),
    h("div", { class: "rules", role: "radiogroup", "aria-labelledby": "rules-heading" }, ...rows),
  );
}

function row(choice: Choice, rule: ReportRule, i: number): HTMLElement {
  const input = h("input", { type: "radio", name: "rule", checked: i === 0 });
  input.addEventListener("change", () => choice.chooseRule(i));
  const word = rule.mode === "shadow" && choice.data.task === "rules" ? h("span", { class: "tag" }, "shadow") : undefined;
  const isTrial = choice.data.task === "compare";
  const name = isTrial ? rule.numbers : rule.name;
  return h(
    "label",
    { class: "rule" },
    input,
    h("span", { class: "name" }, foreign(name), word, h("small", {}, isTrial ? rule.algorithm : `${rule.numbers}, ${rule.algorithm}`)),
    h(
      "span",
      { class: "quiet" },
      h("b", {}, count(rule.limited)),
      ` requests limited (${percent(rule.limited, rule.requests)})`,
      bar({ track: 1, limited: rule.limited === 0 ? 0 : Math.max(0.01, rule.limited / rule.requests) }),
    ),
    h(
      "span",
      { class: "quiet" },
      h("b", {}, count(rule.clientsLimited)),
      ` clients ever limited (${percent(rule.clientsLimited, rule.clients)})`,
    ),
    h("span", { class: "quiet" }, h("b", {}, rule.limited === 0 ? "none" : duration(rule.longestLockoutMs)), " longest lock-out"),
  );
}
