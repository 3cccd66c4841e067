import { Chart, type Layer } from "@floodgate/pages/chart";
import { h, say } from "@floodgate/pages/dom";
import { FiguresTable } from "@floodgate/pages/figures-table";
import { fillOf, swatch } from "@floodgate/pages/fills";
import { axisTime, count, moment, percent, rate, shortCount } from "@floodgate/pages/format";
import { type Counts, type History, rejections, wholeRequests } from "../../contract.js";
import { countsAt, countsOf, seriesOf } from "../history.js";
import type { Figures } from "../model.js";
import { rejectedIn, requestsIn, results } from "../results.js";
import { card, nameSelect, rangeWords, type Section } from "./section.js";

/** Requests per second, stacked by result, and below the share that is rejected. */
export function traffic(): Section {
  const when = h("p");
  const rules = nameSelect("traffic-rule", "All rules");
  const choice = h("div", { class: "end row" }, h("label", { for: "traffic-rule" }, "Rule"), " ", rules.element);
  const name = "Requests per second";
  const element = card("card", "traffic", name, when, choice);

  let shown: (Figures & { readonly rule: string | undefined }) | undefined;
  let pointed: number | undefined;
  const legend = resultLegend();
  const readOut = (): void => {
    if (shown === undefined) return;
    const { history, rule, nowMs } = shown;
    const all = countsOf(history, rule);
    if (pointed === undefined) {
      say(when, `${rule === undefined ? "all rules, " : ""}${rangeWords[history.range]}`);
      legend.show(all, all, count);
    } else {
      say(when, momentsOf(history, pointed, nowMs));
      legend.show(all, countsAt(history, pointed, rule), (figure) => `${rate((figure * 1000) / history.stepMs)}/s`);
    }
  };
  const onPoint = (index: number | undefined): void => {
    pointed = index;
    for (const chart of [requests, share]) chart.mark(index);
    readOut();
  };
  const requests = new Chart({ height: 240, atLeast: 1, axis: shortCount, time: axisTime, onPoint });
  const share = new Chart({
    height: 104,
    atLeast: 0.1,
    most: 1,
    axis: (value) => (value === 0 ? "0" : percent(value)),
    time: axisTime,
    onPoint,
  });
  const requestsTable = new FiguresTable("Requests by result");
  const note = h("p", { class: "small quiet" }, "Each request counts once, whatever the number of rules that it meets.");
  const requestsFigure = h("figure", { "aria-label": name }, requests.element);
  const shareFigure = h("figure", { "aria-label": "Share rejected" }, h("figcaption", {}, h("h3", {}, "Share rejected")), share.element);
  const empty = h("p", { class: "empty quiet" });
  element.append(empty, legend.element, requestsFigure, shareFigure, h("div", { class: "row foot" }, requestsTable.element, note));

  const section: Section = {
    element,
    update(figures) {
      const { overview, history, nowMs } = figures;
      const known = [...overview.rules.map(({ name }) => name), ...history.rules.map(({ rule }) => rule)];
      rules.offer(known.filter((each) => each !== wholeRequests));
      const rule = rules.chosen();
      if (shown?.history === history && shown.rule === rule) return;
      shown = { ...figures, rule };
      const several = rule === undefined && history.rules.length > 2;
      note.hidden = !several;
      const sum = countsOf(history, rule);
      const none = requestsIn(sum) === 0;
      say(empty, `No request${rule === undefined ? "" : " under this rule"} in the ${rangeWords[history.range]}.`);
      empty.hidden = !none;
      for (const part of [legend.element, requestsFigure, shareFigure, requestsTable.element]) part.hidden = none;
      const { stack, rejected } = layersOf(history, rule);
      requests.show({ ...history, layers: stack });
      share.show({ ...history, layers: [rejected] });
      requestsFigure.setAttribute("aria-label", `${name}, ${rangeWords[history.range]}: ${inWords(sum)}`);
      shareFigure.setAttribute("aria-label", shareWords(history, rule));
      requestsTable.show(() => tableOf(history, rule, nowMs));
      readOut();
    },
  };
  rules.element.addEventListener("change", () => shown && section.update(shown));
  return section;
}

/** The stack as rates, and the share that is rejected. Each layer reaches from the floor to the top of its stack; lower ones are drawn over it. */
function layersOf(history: History, rule: string | undefined): { readonly stack: Layer[]; readonly rejected: Layer } {
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
  return { stack: stack.reverse(), rejected: { values: share, ...look } };
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

function shareWords(history: History, rule: string | undefined): string {
  const counts = countsOf(history, rule);
  const requests = requestsIn(counts);
  return `Share rejected, ${rangeWords[history.range]}: ${requests === 0 ? "no requests" : percent(rejectedIn(counts) / requests)}`;
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

interface Legend {
  readonly element: HTMLElement;
  show(whole: Counts, figures: Counts, write: (figure: number) => string): void;
}

/** The results with their patterns and figures. Results that have not occurred are left out. */
function resultLegend(): Legend {
  const items = results.map((result) => {
    const { id, label, means } = result;
    const value = h("span", { class: "value" });
    return { result, value, item: h("li", { title: `${label}: ${means}` }, swatch(id), label, value) };
  });
  return {
    element: h("ul", { class: "row legend" }, ...items.map(({ item }) => item)),
    show(whole, figures, write) {
      const shown = occurred(whole);
      for (const { result, item, value } of items) {
        item.hidden = !shown.includes(result);
        say(value, write(figures[result.id] ?? 0));
      }
    },
  };
}
