import { lines, type Panel, row, table } from "../panels.js";
import { byRule, decided, passed, perSecond, rejected, series, share } from "../query.js";

export const whom: readonly Panel[] = [
  row("Whom, and by which rule?"),
  lines({
    title: "Decisions by result",
    description:
      "Everything that rules decided, stacked. A request under several rules counts once for each, so this may be more than the requests above. Purple would be rejected by a shadow rule.",
    unit: "ops",
    width: 24,
    stacked: true,
    byResult: true,
    queries: { "{{result}}": perSecond("requests", {}, ["result"]) },
  }),
  lines({
    title: "Rejected by rule",
    description: "Which rule rejects. Select the rule above to see the rest of this page for it alone.",
    unit: "reqps",
    width: 12,
    queries: { "{{rule}}": perSecond("requests", rejected, byRule) },
  }),
  lines({
    title: "Share rejected by rule",
    description:
      "The share of each rule's requests that it rejects. Above one half the rule rejects more than it lets through: its limit is wrong, or somebody attacks.",
    unit: "percentunit",
    width: 12,
    max: 1,
    queries: { "{{rule}}": share(perSecond("requests", rejected, byRule), perSecond("requests", decided, byRule)) },
  }),
  table({
    title: "Rules now",
    description:
      "Each rule with its limit, the time in which a full limit comes back, whether it is in shadow mode (1), and its traffic. Sort by a column to find the busiest or the strictest rule. Limits of a rule with plans are those of keys without a plan.",
    label: "rule",
    columns: [
      { title: "Limit", unit: "short", query: `max by (rule) (${series("limit")})` },
      { title: "Window", unit: "s", query: `max by (rule) (${series("window")})` },
      { title: "Shadow", unit: "short", query: `min by (rule) (${series("shadow")})`, words: { 0: "no", 1: "yes" } },
      { title: "Requests/s", unit: "reqps", query: perSecond("requests", {}, byRule) },
      { title: "Rejected/s", unit: "reqps", query: perSecond("requests", rejected, byRule) },
      {
        title: "Share rejected",
        unit: "percentunit",
        query: share(perSecond("requests", rejected, byRule), perSecond("requests", decided, byRule)),
      },
      {
        title: "Share near the limit",
        unit: "percentunit",
        query: share(perSecond("nearLimit", {}, byRule), perSecond("requests", passed, byRule)),
      },
    ],
  }),
];
