import { count, moment, percent, rate, visible } from "@floodgate/pages/format";
import { Card, FiguresTable, foreign, path, Table } from "@floodgate/pages/view/elements";
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import { type History, type Overview, type Result, type RuleInfo, rejections, type SourceInfo, wholeRequests } from "../../contract.js";
import { countsOf, rejectedIn, requestsIn, results, secondsOf, seriesOf } from "../counts.js";
import type { Figures } from "../model.js";
import { joined, rangeWords, type SectionProps } from "./section.js";

const columns = [
  { name: "Rule" },
  { name: "Per second", look: "number" },
  { name: "Over time", look: "trend" },
  { name: "Decisions", look: "number" },
  { name: "Rejected", look: "number" },
] as const;

/** The rules in force in words, with what each does now; and the version that was refused. */
export function Rules({ figures }: SectionProps): VNode {
  const { overview, history, nowMs } = figures;
  const { rules, sources } = overview;
  return (
    <Card id="rules" title="Rules in force" notes={<p>figures of the {rangeWords[history.range]}</p>}>
      <div class="notices stack">{sources.map((source) => refusal(source, nowMs))}</div>
      <div class="scroll" hidden={rules.length === 0}>
        <Table look="folding" caption="Rules, with their requests" columns={columns} rows={rules.map((rule) => cellsOf(rule, figures))} />
      </div>
      {rules.length === 0 && <p class="empty quiet">No rule exists yet. A rule or a limiter shows here as soon as it is in force.</p>}
      <FiguresTable
        caption="All that was counted, by rule"
        summary={`All figures since ${moment(overview.scope.sinceMs, nowMs)}`}
        of={overview}
        write={() => totalsOf(overview)}
      />
    </Card>
  );
}

function cellsOf(rule: RuleInfo, { overview, history }: Figures): ComponentChildren[] {
  const counts = countsOf(history, rule.name);
  const requests = requestsIn(counts);
  const rejected = rejectedIn(counts);
  const share = (some: number): string => `${count(some)}${some === 0 ? "" : ` (${percent(some / requests)})`}`;
  return [
    wordsOf(rule, overview.sources),
    rate(requests / secondsOf(history, overview.scope.sinceMs)),
    <SparkLine history={history} rule={rule.name} />,
    count(requests),
    <span class={rejected > 0 ? "hot" : ""}>
      {rule.mode === "shadow" ? `${share(counts["shadow-limited"] ?? 0)} would be` : share(rejected)}
    </span>,
  ];
}

function wordsOf(rule: RuleInfo, sources: readonly SourceInfo[]): ComponentChildren {
  const source = sources.find(({ id }) => id === rule.source);
  const facts = [
    rule.match,
    rule.key && `counted by ${rule.key}`,
    rule.ban && `ban: ${rule.ban}`,
    source && `${source.name}${rule.version === undefined ? "" : `, version ${rule.version}`}`,
  ].filter((fact) => fact !== undefined);
  return [
    <div class="row">
      {foreign(rule.name, "name")}
      {rule.mode === "shadow" && <span class="tag">shadow: rejects nobody</span>}
      {rule.kind === "gone" && <span class="tag">not in this process</span>}
      {rule.kind === "limiter" && <span class="tag">limiter</span>}
    </div>,
    <div class="policy">{foreign(rule.policy)}</div>,
    <div class="quiet">{joined(facts, " · ")}</div>,
    rule.plans.map(({ name, policy }) => (
      <div class="quiet">
        plan {foreign(name)}: {foreign(policy)}
      </div>
    )),
  ];
}

/** Says that a new version of a source was refused. */
function refusal({ id, name, version, refused }: SourceInfo, nowMs: number): VNode | undefined {
  if (refused === undefined) return undefined;
  return (
    <div key={id} class="notice warn">
      <p>
        <strong>A new version of {foreign(name)} was refused</strong> at {moment(refused.atMs, nowMs)}.
      </p>
      <p>{version === undefined ? "The last good version" : ["Version ", foreign(version)]} stays in force.</p>
      <p class="reason small">{foreign(refused.reason)}</p>
    </div>
  );
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

/** Which results are drawn over each other: what was rejected is at the floor, above it what a shadow rule would reject. */
const layers: Readonly<Record<string, readonly Result[]>> = {
  allowed: results.map(({ id }) => id),
  "shadow-limited": [...rejections, "shadow-limited"],
  limited: rejections,
};

/** A rule's requests over the range in little. */
function SparkLine({ history, rule }: { readonly history: History; readonly rule: string }): VNode {
  const drawn = useMemo(
    () => Object.entries(layers).map(([look, which]) => ({ look, sums: merged(history, which, rule) })),
    [history, rule],
  );
  const most = Math.max(1, ...drawn.flatMap(({ sums }) => sums));
  return (
    <svg viewBox={`0 0 ${width} ${height}`} class="spark" aria-hidden="true" preserveAspectRatio="none">
      {drawn.map(({ look, sums }) => path(look, area(sums, most)))}
    </svg>
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
