import { count, latency, moment, percent, plural, rate, visible } from "@floodgate/pages/format";
import { FiguresTable, figure, foreign } from "@floodgate/pages/view/elements";
import type { ComponentChildren, VNode } from "preact";
import { type Counts, type History, type Overview, type Result, type StoreInfo, wholeRequests } from "../../contract.js";
import { countsAt, countsOf, rejectedIn, requestsIn, secondsOf, withoutStore, withoutStoreIn } from "../counts.js";
import { highest } from "./bursts.js";
import { rangeWords, type SectionProps } from "./section.js";
import { isWell, slowest, untimed } from "./stores.js";

/** The first thing to read: whether requests are limited, how many, by which rules, and whether the stores answer. */
export function Answer({ figures: { overview, history, nowMs } }: SectionProps): VNode {
  const during = `in the ${rangeWords[history.range]}`;
  const counts = countsOf(history);
  const requests = requestsIn(counts);
  const rejected = rejectedIn(counts);
  const peak = busiestOf(history);
  return (
    <section class="answer" aria-labelledby="answer">
      <h1 id="answer" class="headline">
        {headlineOf(overview, requests, rejected, wouldReject(history), withoutStoreIn(counts))}
      </h1>
      <p class="detail quiet">{detailOf(overview, history, during)}</p>
      <dl class="figures">
        {figure("Requests per second", rate(requests / secondsOf(history, overview.scope.sinceMs)), `on average ${during}`)}
        {figure("Rejected", count(rejected), requests === 0 ? during : `${percent(rejected / requests)} of ${plural(requests, "request")}`)}
        {figure("Busiest second", peak ? count(peak.count) : "–", peak ? `requests at ${moment(peak.secondMs, nowMs)}` : during)}
        {storesFigure(overview.stores)}
      </dl>
      <p class="scope small quiet">{scopeOf(overview, nowMs)}</p>
      <FiguresTable
        caption="Processes"
        summary="Show the processes"
        hidden={overview.scope.kind === "process"}
        of={overview}
        write={() => ({
          columns: ["Process", "Counts since", "Requests in the last second"],
          rows: overview.instances.map(({ name, self, sinceMs, perSecond }) => [
            `${visible(name)}${self ? ", this one" : ""}`,
            moment(sinceMs, nowMs),
            count(perSecond),
          ]),
        })}
      />
    </section>
  );
}

function headlineOf(overview: Overview, requests: number, rejected: number, shadow: number, degraded: number): string {
  if (overview.stores.some((store) => !isWell(store)) || (degraded > 0 && degraded * 2 > requests)) {
    return rejected > 0 ? "A store fails, and requests are rejected" : "A store fails";
  }
  if (rejected > 0) return `${plural(rejected, "request")} rejected`;
  if (shadow > 0) return "No request rejected; shadow rules would reject some";
  if (requests > 0) return "No request rejected";
  return overview.totals.length > 0 ? "No request" : "No request yet";
}

function detailOf(overview: Overview, history: History, during: string): ComponentChildren {
  const whole = countsOf(history);
  const requests = requestsIn(whole);
  if (requests === 0) {
    if (overview.totals.length > 0) return [`No limiter has decided anything ${during}.`];
    if (overview.rules.length > 0) return ["No limiter has decided anything yet. Send a request: it shows here within a second."];
    return [
      "This process has no rule yet. In an app, add ",
      <code>{'app.use(rateLimit({ limit: 100, window: "1m" }))'}</code>,
      ". For floodgate serve and floodgate gateway, write rules to the file or the Redis key that they read.",
    ];
  }
  const without = withoutStoreWords(whole, requests);
  const worst = history.rules
    .filter(({ rule }) => rule !== wholeRequests)
    .map(({ rule }) => ({ rule, counts: countsOf(history, rule) }))
    .filter(({ counts }) => rejectedIn(counts) > 0)
    .sort((a, b) => rejectedIn(b.counts) - rejectedIn(a.counts));
  if (worst.length === 0) return [`All ${plural(requests, "request")} ${during} passed.${without}`];
  const parts = worst
    .slice(0, 2)
    .map(({ rule, counts }, i) => [
      i > 0 && ", ",
      foreign(rule, "name"),
      ` rejected ${count(rejectedIn(counts))} of ${count(requestsIn(counts))} (${percent(rejectedIn(counts) / requestsIn(counts))})`,
    ]);
  const others = worst.length - 2;
  const rest = others > 0 ? `, and ${plural(others, "more rule")} rejected some.` : ".";
  return [`${during[0]?.toUpperCase()}${during.slice(1)}, `, parts, rest, without];
}

/** How many requests were decided without the store, and how. */
function withoutStoreWords(counts: Counts, requests: number): string {
  const all = withoutStoreIn(counts);
  if (all === 0) return "";
  const parts = Object.entries(withoutStore)
    .map(([id, words]) => ({ words, some: counts[id as Result] ?? 0 }))
    .flatMap(({ words, some }) => (some > 0 ? [`${count(some)} ${words}`] : []));
  return ` ${count(all)} of ${plural(requests, "request")} were decided without the store: ${parts.join(", ")}.`;
}

/** How often rules in shadow mode would have rejected a request. */
const wouldReject = (history: History): number =>
  history.rules.reduce((sum, { rule }) => sum + (countsOf(history, rule)["shadow-limited"] ?? 0), 0);

function busiestOf(history: History): { readonly secondMs: number; readonly count: number } | undefined {
  const { range, startMs, stepMs, points } = history;
  if (range !== "minute") return highest(history.bursts);
  const seconds = Array.from({ length: points }, (_, i) => requestsIn(countsAt(history, i)));
  const most = Math.max(...seconds);
  return most === 0 ? undefined : { secondMs: startMs + seconds.lastIndexOf(most) * stepMs, count: most };
}

function storesFigure(stores: readonly StoreInfo[]): VNode {
  const down = stores.filter((each) => !isWell(each)).length;
  const p99 = slowest(stores);
  if (stores.length === 0) return figure("Store", "–", "no store is in use");
  if (down > 0) return figure("Store", stores.length === 1 ? "Fails" : `${down} of ${stores.length} fail`, "decided without it", "bad");
  return figure("Store", "Answers", p99 === undefined ? untimed(stores) : `99 of 100 decisions within ${latency(p99)}`, "good");
}

function scopeOf(overview: Overview, nowMs: number): ComponentChildren {
  const { scope, instances } = overview;
  const since = `Counted since ${moment(scope.sinceMs, nowMs)}.`;
  if (scope.trouble !== undefined) return ["These are the figures of this process alone: ", foreign(scope.trouble), `. ${since}`];
  if (scope.kind === "process") return [`These are the figures of this process alone. ${since}`];
  return [`The sum of ${plural(instances.length, "process", "processes")}. ${since}`];
}
