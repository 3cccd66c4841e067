import { count, duration } from "@floodgate/pages/format";
import { Card, foreign, Scroll, Table } from "@floodgate/pages/view/elements";
import type { ComponentChildren, VNode } from "preact";
import { type Choice, percent, type ReportClient, type ReportRule } from "../model.js";

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

/** The clients with the most requests, and those that were limited most. */
export function Clients({ rule: { windowMs, heaviest } }: { readonly rule: ReportRule }): VNode {
  const most = Math.max(1, ...heaviest.map(({ requests }) => requests));
  const columns = [
    { name: "Client" },
    { name: "Requests", look: "number" },
    { name: "Limited", look: "number" },
    { name: "Share limited", look: "bar" },
    { name: `Most in ${duration(windowMs)}`, look: "number" },
    { name: "Longest lock-out", look: "number" },
  ];
  return (
    <Card id="clients" title="Heaviest clients">
      <p class="lead quiet">
        Those with the most requests, and those that the rule as it is limited most. A request that only other rules rejected does not count
        here.
      </p>
      <Scroll label="Table of clients">
        <Table caption="Heaviest clients" columns={columns} rows={heaviest.map((client) => cellsOf(client, most))} />
      </Scroll>
    </Card>
  );
}

const cellsOf = ({ name, requests, limited, peak, longestLockoutMs }: ReportClient, most: number): ComponentChildren[] => [
  foreign(name, "key"),
  count(requests),
  limited === 0 ? "none" : `${count(limited)} (${percent(limited, requests)})`,
  bar({ allowed: requests / most, limited: limited / most }),
  count(peak),
  limited === 0 ? "none" : duration(longestLockoutMs),
];

/** A bar of parts that lie over each other, each as wide as its share. */
const bar = (parts: Readonly<Record<string, number>>): VNode => (
  <svg class="parts" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
    {Object.entries(parts).map(([name, share]) => (
      <rect class={name} width={100 * share} height={1} />
    ))}
  </svg>
);
