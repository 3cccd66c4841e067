import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describePolicy, type RuleSet } from "@floodgate/core/rules";
import type { CompareOptions, Comparison } from "../compare/compare.js";
import { trialRules } from "../compare/trial.js";
import type { MeasuredClient, RuleMeasure } from "../measure/rule-meter.js";
import { number } from "../print/format.js";
import type { LogSource } from "../read/source.js";
import type { LogSummary, SimulatedRule, Simulation } from "../simulate.js";
import type { Suggestion, SuggestOptions } from "../suggest/suggest.js";
import type { ReportClient, ReportData, ReportRule } from "./contract.js";
import { type Survey, type SurveyOptions, survey } from "./survey.js";

/** When a report was made, and with which command. */
export interface Made {
  readonly atMs: number;
  readonly command: string;
}

/** The most clients, rules and notes that a report shows, and the most characters of a name. */
const maxClients = 25;
const maxRules = 100;
const maxNotes = 50;
const longestName = 200;

/** A rule, or a policy that was tried, and what it did. */
type Reported = Omit<SimulatedRule, "memory">;

/**
 * The report of a simulation: it tries other limits too, so it reads the logs twice more.
 * @throws FloodgateError if an option is invalid.
 */
export function simulationReport(
  sources: readonly LogSource[],
  set: RuleSet,
  simulation: Simulation,
  options: SurveyOptions,
  made: Made,
): Promise<ReportData> {
  return reportOf("rules", sources, set, simulation, simulation.rules, options, made);
}

/** The report of a comparison. */
export function comparisonReport(
  sources: readonly LogSource[],
  comparison: Comparison,
  options: CompareOptions & SurveyOptions,
  made: Made,
): Promise<ReportData> {
  const { policies, by } = comparison;
  const set = trialRules(new Map(policies.map(({ policy }, i) => [`policy ${i + 1}`, policy])), options);
  const rules = policies.map((each): Reported => ({ ...each, name: each.text, mode: "shadow", by }));
  return reportOf("compare", sources, set, comparison, rules, options, made);
}

/** The report of a suggestion. */
export function suggestionReport(
  sources: readonly LogSource[],
  suggestion: Suggestion,
  options: SuggestOptions & SurveyOptions,
  made: Made,
): Promise<ReportData> {
  const { by } = suggestion;
  const rules = suggestion.rules.map((each): Reported => ({ ...each, name: `suggested-${each.algorithm}`, mode: "shadow", by }));
  const set = trialRules(new Map(rules.map(({ name, policy }) => [name, policy])), options);
  return reportOf("suggest", sources, set, suggestion, rules, options, made);
}

/** What a program can use of a report beside the measures: the timeline, and for each rule its grid and its burst. */
export function reportJson({ timeline, rules }: ReportData): object {
  return {
    timeline: timeline ?? null,
    grids: rules.map(({ name, grid, burst }) => ({ name, grid: grid ?? null, burst: burst ?? null })),
  };
}

function ruleOf(rule: Reported, { grid, burst }: Survey["rules"][number]): ReportRule {
  const { requests, limited, clients, clientsLimited, delayed, longestQueuedMs, bans, windowMs } = rule;
  return {
    name: cut(rule.name),
    algorithm: rule.policy.algorithm,
    numbers: describePolicy(rule.policy),
    mode: rule.mode,
    by: cut(rule.by),
    ...{ requests, limited, clients, clientsLimited, delayed, longestQueuedMs, bans, windowMs },
    longestLockoutMs: finite(rule.longestLockoutMs),
    heaviest: clientsOf(rule),
    grid,
    burst: burst === undefined ? undefined : { ...burst, client: cut(burst.client) },
  };
}

function clientsOf({ heaviest, topLimited }: RuleMeasure): ReportClient[] {
  const clients = new Map<string, MeasuredClient>();
  for (const client of [...topLimited.slice(0, maxClients), ...heaviest.slice(0, maxClients)]) clients.set(client.key, client);
  return [...clients.values()]
    .sort((a, b) => b.requests - a.requests)
    .map(({ key, longestLockoutMs, requests, limited, peak }) => {
      return { name: cut(key), requests, limited, peak, longestLockoutMs: finite(longestLockoutMs) };
    });
}

/** What a simulation, a comparison and a suggestion say of the logs. */
type LogReport = LogSummary & { readonly notes: readonly string[]; readonly rejected?: number; readonly touch?: number };

async function reportOf(
  task: ReportData["task"],
  sources: readonly LogSource[],
  set: RuleSet,
  { lines, requests, skipped, firstMs, lastMs, formats, notes, rejected, touch }: LogReport,
  rules: readonly Reported[],
  options: SurveyOptions,
  { atMs, command }: Made,
): Promise<ReportData> {
  const found = await survey(sources, set, options);
  return {
    task,
    madeAtMs: atMs,
    command: cut(command, 2000),
    logs: sources.slice(0, maxNotes).map(({ name }) => cut(name)),
    formats: [...new Set(Object.values(formats))].map((name) => cut(name)),
    ...{ lines, requests, skipped, firstMs, lastMs, rejected, touch },
    timeline: found.timeline,
    rules: rules.slice(0, maxRules).map((rule, i) => ruleOf(rule, found.rules[i] as Survey["rules"][number])),
    notes: [
      ...[...notes, ...found.notes].slice(0, maxNotes).map((note) => cut(note, 1000)),
      ...(rules.length > maxRules ? [`This page shows ${maxRules} of ${rules.length} rules.`] : []),
    ],
  };
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

function cut(text: string, longest = longestName): string {
  return text.length > longest ? `${text.slice(0, longest)}… (${number(text.length)} characters)` : text;
}

/** The page without data, which the build writes: from `src/report` as from `dist/report`. */
const template = join(__dirname, "..", "..", "dist", "report.html");

const place = '"{{data}}"';

/** A report as one HTML file that loads nothing else. Nothing of the log becomes markup: it is JSON in which no `<` is left. */
export function reportHtml(data: ReportData): string {
  const json = JSON.stringify(data).replaceAll("<", "\\u003c");
  const html = readFileSync(template, "utf8");
  const at = html.indexOf(place);
  return html.slice(0, at) + json + html.slice(at + place.length);
}
