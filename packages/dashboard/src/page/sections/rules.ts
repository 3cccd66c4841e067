import { fill, foreign, h, path, say, svg, visible } from "@floodgate/pages/dom";
import { FiguresTable } from "@floodgate/pages/figures-table";
import { count, moment, percent, rate } from "@floodgate/pages/format";
import { type History, type Overview, type RuleInfo, rejections, type SourceInfo, wholeRequests } from "../../contract.js";
import { countsOf, secondsOf, seriesOf } from "../history.js";
import type { Figures } from "../model.js";
import { type Result, rejectedIn, requestsIn, results } from "../results.js";
import { keepRows, type Row, redrawn } from "../rows.js";
import { card, foldingRow, foldingTable, joined, rangeWords, type Section } from "./section.js";

const columns = [
  { name: "Rule" },
  { name: "Per second", look: "number" },
  { name: "Over time", look: "trend" },
  { name: "Decisions", look: "number" },
  { name: "Rejected", look: "number" },
] as const;

/** The rules in force in words, with what each does now; and the version that was refused. */
export function rules(): Section {
  const when = h("p");
  const element = card("card", "rules", "Rules in force", when);
  const refused = h("div", { class: "notices stack" });
  const body = h("tbody");
  const table = foldingTable("Rules, with their requests", columns, body);
  const empty = h("p", { class: "empty quiet" }, "No rule exists yet. A rule or a limiter shows here as soon as it is in force.");
  const totals = new FiguresTable("All that was counted, by rule");
  element.append(refused, h("div", { class: "scroll" }, table), empty, totals.element);
  return {
    element,
    update(figures) {
      const { overview, history, nowMs } = figures;
      say(when, `figures of the ${rangeWords[history.range]}`);
      keepRows(
        refused,
        overview.sources.filter((source) => source.refused !== undefined),
        ({ id }) => id,
        () => redrawn(h("div", { class: "notice warn" }), (source) => refusalWords(source, nowMs)),
      );
      empty.hidden = overview.rules.length > 0;
      table.hidden = overview.rules.length === 0;
      keepRows(
        body,
        overview.rules.map((rule) => ({ rule, figures })),
        ({ rule }, index) => `${index} ${JSON.stringify(rule)}`,
        ({ rule }) => ruleRow(rule, overview.sources),
      );
      say(totals.summary, `All figures since ${moment(overview.scope.sinceMs, nowMs)}`);
      totals.show(() => totalsOf(overview));
    },
  };
}

function ruleRow(rule: RuleInfo, sources: readonly SourceInfo[]): Row<{ readonly figures: Figures }> {
  const [perSecond, course, decisions, rejected] = [h("span"), h("span"), h("span"), h("span")];
  const row = foldingRow(columns, wordsOf(rule, sources), perSecond, course, decisions, rejected);
  let drawn: unknown;
  return {
    row,
    update({ figures: { overview, history } }) {
      if (drawn === history) return;
      drawn = history;
      const counts = countsOf(history, rule.name);
      say(perSecond, rate(requestsIn(counts) / secondsOf(history, overview.scope.sinceMs)));
      say(decisions, count(requestsIn(counts)));
      const turnedAway = rejectedIn(counts);
      const share = (some: number) => `${count(some)}${some === 0 ? "" : ` (${percent(some / requestsIn(counts))})`}`;
      say(rejected, rule.mode === "shadow" ? `${share(counts["shadow-limited"] ?? 0)} would be` : share(turnedAway));
      rejected.classList.toggle("hot", turnedAway > 0);
      fill(course, sparkLine(history, rule.name));
    },
  };
}

function wordsOf(rule: RuleInfo, sources: readonly SourceInfo[]): Node[] {
  const source = sources.find(({ id }) => id === rule.source);
  const facts = [
    rule.match,
    rule.key && `counted by ${rule.key}`,
    rule.ban && `ban: ${rule.ban}`,
    source && `${source.name}${rule.version === undefined ? "" : `, version ${rule.version}`}`,
  ].filter((fact) => fact !== undefined);
  return [
    h(
      "div",
      { class: "row" },
      foreign(rule.name, "name"),
      rule.mode === "shadow" ? h("span", { class: "tag" }, "shadow: rejects nobody") : undefined,
      rule.kind === "gone" ? h("span", { class: "tag" }, "not in this process") : undefined,
      rule.kind === "limiter" ? h("span", { class: "tag" }, "limiter") : undefined,
    ),
    rule.policy === "" ? undefined : h("div", { class: "policy" }, foreign(rule.policy)),
    facts.length === 0 ? undefined : h("div", { class: "quiet" }, ...joined(facts, " · ")),
    ...rule.plans.map((plan) => h("div", { class: "quiet" }, "plan ", foreign(plan.name), ": ", foreign(plan.policy))),
  ].filter((part) => part !== undefined);
}

function refusalWords({ name, version, refused }: SourceInfo, nowMs: number): Node[] {
  if (refused === undefined) return [];
  return [
    h("p", {}, h("strong", {}, "A new version of ", foreign(name), " was refused"), ` at ${moment(refused.atMs, nowMs)}.`),
    h("p", {}, ...(version === undefined ? ["The last good version"] : ["Version ", foreign(version)]), " stays in force."),
    h("p", { class: "reason small" }, foreign(refused.reason)),
  ];
}

/** Everything that was counted since the process started. */
function totalsOf({ totals }: Overview): { columns: string[]; rows: string[][] } {
  return {
    columns: ["Rule", ...results.map(({ label }) => label), "Units asked", "Units charged", "Bans"],
    rows: totals.map(({ rule, counts, units, bans }) => [
      rule === wholeRequests ? "All requests, each once" : visible(rule, 60),
      ...results.map(({ id }) => count(counts[id] ?? 0)),
      ...[units.asked, units.charged, bans].map(count),
    ]),
  };
}

const width = 120;
const height = 28;
const steps = 60;

/** A rule's requests over the range in little. At the floor are those that were rejected, above them those that a shadow rule would reject. */
function sparkLine(history: History, rule: string): SVGElement {
  const rejected = merged(history, rejections, rule);
  const shadow = merged(history, [...rejections, "shadow-limited"], rule);
  const all = merged(
    history,
    results.map(({ id }) => id),
    rule,
  );
  const most = Math.max(1, ...all);
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, class: "spark", "aria-hidden": "true", preserveAspectRatio: "none" },
    path("allowed", area(all, most)),
    path("shadow-limited", area(shadow, most)),
    path("limited", area(rejected, most)),
  );
}

/** The series of several results added up, in as many steps as there is room for. */
function merged(history: History, which: readonly Result[], rule: string): number[] {
  const sums = new Array<number>(steps).fill(0);
  for (const result of which) {
    seriesOf(history, result, rule).forEach((figure, i) => {
      const step = Math.floor((i * steps) / history.points);
      sums[step] = (sums[step] ?? 0) + figure;
    });
  }
  return sums;
}

function area(figures: readonly number[], most: number): string {
  const step = width / figures.length;
  const tops = figures.map((figure) => `V${(height - (figure / most) * (height - 2)).toFixed(1)}h${step}`);
  return `M0 ${height}${tops.join("")}V${height}Z`;
}
