import { count, duration, plural, visible } from "@floodgate/pages/format";
import { Card, figure, foreign } from "@floodgate/pages/view/elements";
import type { VNode } from "preact";
import { dayOf, momentOf, percent, type ReportData, type ReportRule, share, spanOf } from "../model.js";

/** What came out, in one sentence and a few figures. */
export function Summary({ data }: { readonly data: ReportData }): VNode {
  const { task, requests, rejected, firstMs, lastMs = firstMs, rules } = data;
  const most = (of: (rule: ReportRule) => number): ReportRule | undefined => [...rules].sort((a, b) => of(b) - of(a))[0];
  const widest = most((rule) => rule.clients);
  const strictest = most((rule) => rule.clientsLimited);
  const touched = strictest?.clientsLimited ?? 0;
  const lockouts = rules.map(({ longestLockoutMs }) => longestLockoutMs);
  const longest = lockouts.includes(null) ? null : Math.max(0, ...(lockouts as number[]));
  const period = firstMs !== undefined && lastMs !== undefined ? { firstMs, lastMs } : undefined;
  const whom = strictest && `${percent(touched, strictest.clients)} of ${count(strictest.clients)} by ${strictest.by}`;
  return (
    <header class="summary">
      <p class="brand">
        Floodgate<span>{period && `a replay of ${daysOf(period.firstMs, period.lastMs)}`}</span>
      </p>
      <h1>{sentence(data)}</h1>
      <p class="quiet">{period === undefined ? "The log has no request." : `${spanOf(period.firstMs, period.lastMs)} UTC`}</p>
      <dl class="figures">
        {figure("Requests", count(requests), period && `in ${duration(Math.max(1000, period.lastMs - period.firstMs))}`)}
        {rejected !== undefined && figure("Rejected", count(rejected), percent(rejected, requests))}
        {figure("Clients", count(widest?.clients ?? 0), widest && `by ${widest.by}`)}
        {task !== "rules" && figure(task === "compare" ? "Policies" : "Suggestions", count(rules.length))}
        {task === "rules" && figure("Clients ever limited", count(touched), touched > 0 ? whom : undefined)}
        {task === "rules" && figure("Longest lock-out", longest === 0 ? "none" : duration(longest))}
      </dl>
    </header>
  );
}

function daysOf(firstMs: number, lastMs: number): string {
  const [first, last] = [dayOf(firstMs), dayOf(lastMs)];
  return first === last ? first : `${first} to ${last}`;
}

function sentence({ task, requests, rejected = 0, rules, touch = 0 }: ReportData): string {
  if (requests === 0) return "There is no request to replay";
  if (task === "compare") return `${plural(rules.length, "policy", "policies")} on the same ${plural(requests, "request")}`;
  if (task === "suggest") {
    const clients = plural(rules[0]?.clients ?? 0, "client");
    return touch === 0 ? `Limits that would touch none of ${clients}` : `Limits that would touch at most ${share(touch)} of ${clients}`;
  }
  if (rejected === 0) return `None of ${plural(requests, "request")} would have been rejected`;
  return `${count(rejected)} of ${plural(requests, "request")} would have been rejected`;
}

/** What one should know to judge the numbers. */
export const Notes = ({ notes }: { readonly notes: readonly string[] }): VNode => (
  <Card id="notes" title="Before you rely on these numbers">
    <ul class="notes">
      {notes.map((note) => (
        <li>{foreign(note)}</li>
      ))}
    </ul>
  </Card>
);

export function About({ data }: { readonly data: ReportData }): VNode {
  const { logs, formats, lines, requests, skipped, madeAtMs, command } = data;
  const more = logs.length > 5 ? ` and ${count(logs.length - 5)} more` : "";
  const facts = {
    Logs: foreign(logs.slice(0, 5).join(", ") + more),
    Format: foreign(formats.join(", ")),
    Lines: `${plural(lines, "line")}, ${plural(requests, "request")}, ${count(skipped)} skipped (${percent(skipped, lines)})`,
    Made: `${momentOf(madeAtMs)} UTC`,
    Command: <code class="foreign">{visible(command, 2000)}</code>,
  };
  return (
    <footer>
      <dl>{Object.entries(facts).map(([name, fact]) => [<dt>{name}</dt>, <dd>{fact}</dd>])}</dl>
    </footer>
  );
}
