import { axisTime, count, moment, percent, rate, shortCount } from "@floodgate/pages/format";
import { Chart, intervalAt, type Layer } from "@floodgate/pages/view/chart";
import { Card, FiguresTable } from "@floodgate/pages/view/elements";
import { fillOf, swatch } from "@floodgate/pages/view/fills";
import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import { type Counts, type History, rejections, wholeRequests } from "../../contract.js";
import { countsAt, countsOf, rejectedIn, requestsIn, results, seriesOf } from "../counts.js";
import { NameSelect, rangeWords, type SectionProps } from "./section.js";

const title = "Requests per second";

/** Requests per second, stacked by result, and below the share that is rejected. */
export function Traffic({ figures: { overview, history, nowMs } }: SectionProps): VNode {
  const [chosen, choose] = useState("");
  const [share, setShare] = useState<number>();
  const known = [...overview.rules.map(({ name }) => name), ...history.rules.map(({ rule }) => rule)];
  const names = known.filter((each) => each !== wholeRequests);
  const rule = names.includes(chosen) ? chosen : undefined;
  const { stack, rejected } = useMemo(() => layersOf(history, rule), [history, rule]);
  const all = countsOf(history, rule);
  const requests = requestsIn(all);
  const during = rangeWords[history.range];
  const pointed = intervalAt(share, history.points);
  const perSecond = (figure: number): string => `${rate((figure * 1000) / history.stepMs)}/s`;
  const common = { startMs: history.startMs, stepMs: history.stepMs, time: axisTime, marked: pointed, onPoint: setShare };
  const notes = [
    <p>{pointed === undefined ? `${rule === undefined ? "all rules, " : ""}${during}` : momentsOf(history, pointed, nowMs)}</p>,
    <div class="end row">
      <label for="traffic-rule">Rule</label>
      <NameSelect id="traffic-rule" names={names} all="All rules" onChoose={choose} />
    </div>,
  ];
  return (
    <Card id="traffic" title={title} notes={notes}>
      {requests === 0 && (
        <p class="empty quiet">
          No request{rule !== undefined && " under this rule"} in the {during}.
        </p>
      )}
      <div hidden={requests === 0}>
        <ul class="row legend">
          {occurred(all).map(({ id, label, means }) => (
            <li key={id} title={`${label}: ${means}`}>
              {swatch(id)}
              {label}
              <span class="value">
                {pointed === undefined ? count(all[id] ?? 0) : perSecond(countsAt(history, pointed, rule)[id] ?? 0)}
              </span>
            </li>
          ))}
        </ul>
        <figure aria-label={`${title}, ${during}: ${inWords(all)}`}>
          <Chart {...common} layers={stack} height={240} atLeast={1} axis={shortCount} />
        </figure>
        <figure aria-label={`Share rejected, ${during}: ${requests === 0 ? "no requests" : percent(rejectedIn(all) / requests)}`}>
          <figcaption>
            <h3>Share rejected</h3>
          </figcaption>
          <Chart {...common} layers={rejected} height={104} atLeast={0.1} most={1} axis={(value) => (value === 0 ? "0" : percent(value))} />
        </figure>
        <div class="row foot">
          <FiguresTable caption="Requests by result" of={stack} write={() => tableOf(history, rule, nowMs)} />
          <p class="small quiet" hidden={rule !== undefined || history.rules.length <= 2}>
            Each request counts once, whatever the number of rules that it meets.
          </p>
        </div>
      </div>
    </Card>
  );
}

/** The stack as rates, and the share that is rejected. Each layer reaches from the floor to the top of its stack; lower ones are drawn over it. */
function layersOf(history: History, rule: string | undefined): { readonly stack: Layer[]; readonly rejected: Layer[] } {
  const { stepMs, points } = history;
  const perSecond = 1000 / stepMs;
  const sums = new Array<number>(points).fill(0);
  const rejected = new Array<number>(points).fill(0);
  const stack = occurred(countsOf(history, rule)).map(({ id }): Layer => {
    const values = seriesOf(history, id, rule).map((figure, i) => {
      sums[i] = (sums[i] ?? 0) + figure;
      if (rejections.includes(id)) rejected[i] = (rejected[i] ?? 0) + figure;
      return (sums[i] ?? 0) * perSecond;
    });
    return { values, fill: fillOf(id), stroke: `var(--${id}-ink)` };
  });
  const share = sums.map((sum, i) => (sum === 0 ? null : (rejected[i] ?? 0) / sum));
  const look = { fill: "var(--limited-tint)", stroke: "var(--limited-ink)", alwaysLined: true };
  return { stack: stack.reverse(), rejected: [{ values: share, ...look }] };
}

const momentsOf = (history: History, index: number, nowMs: number): string => {
  const from = history.startMs + index * history.stepMs;
  return history.stepMs === 1000 ? moment(from, nowMs) : `${moment(from, nowMs)} to ${moment(from + history.stepMs, nowMs)}`;
};

function inWords(counts: Counts): string {
  if (requestsIn(counts) === 0) return "no requests";
  return results
    .filter(({ id }) => (counts[id] ?? 0) > 0)
    .map(({ id, label }) => `${count(counts[id] ?? 0)} ${label.toLowerCase()}`)
    .join(", ");
}

function tableOf(history: History, rule: string | undefined, nowMs: number): { columns: string[]; rows: string[][] } {
  const shown = occurred(countsOf(history, rule));
  const rows = Array.from({ length: history.points }, (_, i) => ({ i, counts: countsAt(history, i, rule) }))
    .filter(({ counts }) => requestsIn(counts) > 0)
    .reverse()
    .map(({ i, counts }) => [
      moment(history.startMs + i * history.stepMs, nowMs),
      ...shown.map(({ id }) => count(counts[id] ?? 0)),
      percent(rejectedIn(counts) / requestsIn(counts)),
    ]);
  return { columns: [`${history.stepMs / 1000} s from`, ...shown.map(({ label }) => label), "Share rejected"], rows };
}

/** The results that are shown: those that have occurred, and those that are always shown. */
const occurred = (counts: Counts): typeof results => results.filter(({ id, always }) => always || (counts[id] ?? 0) > 0);
