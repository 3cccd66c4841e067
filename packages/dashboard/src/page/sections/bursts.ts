import { Chart } from "@floodgate/pages/chart";
import { h, say } from "@floodgate/pages/dom";
import { FiguresTable } from "@floodgate/pages/figures-table";
import { axisTime, count, moment, rate, shortCount } from "@floodgate/pages/format";
import type { Burst, History } from "../../contract.js";
import { card, rangeWords, type Section } from "./section.js";

/** The busiest second of each minute: an average hides a burst. */
export function bursts(): Section {
  const when = h("p");
  const element = card("card half", "bursts", "Busiest second of each minute", when);
  let shown: { readonly history: History; readonly nowMs: number } | undefined;
  let pointed: number | undefined;
  const read = h("p", { class: "readout quiet" });
  const chart = new Chart({
    height: 168,
    atLeast: 1,
    axis: shortCount,
    time: axisTime,
    onPoint: (index) => {
      pointed = index;
      readOut();
    },
  });
  const empty = h("p", { class: "empty quiet" }, "No minute with a request yet.");
  const figure = h("figure", { "aria-label": "Busiest second of each minute" }, chart.element);
  const table = new FiguresTable("Busiest second of each minute");
  element.append(read, figure, empty, h("div", { class: "row foot" }, table.element));

  const readOut = (): void => {
    if (shown === undefined) return;
    const { history, nowMs } = shown;
    const burst = pointed === undefined ? highest(history.bursts) : minutesOf(history)[pointed];
    if (burst !== undefined) say(read, sentenceOf(burst, pointed === undefined, nowMs));
    else say(read, pointed === undefined ? "" : "No request in that minute.");
  };

  return {
    element,
    update({ history: chosen, hour, nowMs }) {
      const history = chosen.range === "day" ? chosen : hour;
      if (history === shown?.history) return;
      shown = { history, nowMs };
      say(when, rangeWords[history.range]);
      const none = history.bursts.length === 0;
      empty.hidden = !none;
      figure.hidden = table.element.hidden = read.hidden = none;
      const minutes = minutesOf(history);
      const value = (of: (burst: Burst) => number): (number | null)[] => minutes.map((burst) => (burst === undefined ? null : of(burst)));
      chart.show({
        startMs: Math.floor(history.startMs / 60_000) * 60_000,
        stepMs: 60_000,
        layers: [
          // What several processes may have had together at most; then their surest count; then what of it passed; then the minute's average.
          { bars: true, fill: "var(--line)", values: value((burst) => burst.atMost) },
          { bars: true, fill: "var(--limited)", values: value((burst) => burst.count) },
          { bars: true, fill: "var(--allowed)", values: value((burst) => burst.count - burst.limited) },
          { stroke: "var(--text)", values: value((burst) => burst.inMinute / 60) },
        ],
      });
      const peak = highest(history.bursts);
      figure.setAttribute(
        "aria-label",
        peak === undefined ? "No requests" : `Busiest second of each minute. ${sentenceOf(peak, true, nowMs)}`,
      );
      table.show(() => ({
        columns: ["Second", "Requests", "Rejected", "Average of its minute"],
        rows: [...history.bursts]
          .reverse()
          .map((burst) => [moment(burst.secondMs, nowMs), range(burst), count(burst.limited), `${rate(burst.inMinute / 60)}/s`]),
      }));
      readOut();
    },
  };
}

/** The burst of each minute. */
function minutesOf(history: History): (Burst | undefined)[] {
  const byMinute = new Map(history.bursts.map((burst) => [burst.minuteMs, burst]));
  const first = Math.floor(history.startMs / 60_000);
  const last = Math.floor((history.startMs + history.points * history.stepMs - 1) / 60_000);
  return Array.from({ length: last - first + 1 }, (_, i) => byMinute.get((first + i) * 60_000));
}

export const highest = (all: readonly Burst[]): Burst | undefined => [...all].sort((a, b) => b.count - a.count)[0];

const range = (burst: Burst): string =>
  burst.atMost > burst.count ? `${count(burst.count)} to ${count(burst.atMost)}` : count(burst.count);

function sentenceOf(burst: Burst, isPeak: boolean, nowMs: number): string {
  const rejected = burst.limited === 0 ? "" : `, ${count(burst.limited)} rejected`;
  const average = burst.inMinute / 60;
  return `${isPeak ? "Peak: " : ""}${range(burst)} in one second at ${moment(burst.secondMs, nowMs)}${rejected}. The average of its minute is ${rate(average)} per second.`;
}
