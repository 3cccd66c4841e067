import { Chart } from "@floodgate/pages/chart";
import { h, say } from "@floodgate/pages/dom";
import { FiguresTable } from "@floodgate/pages/figures-table";
import { count, duration, plural, shortCount } from "@floodgate/pages/format";
import { type Choice, limitText, type Timeline } from "../model.js";
import { axisTime, percent, spanOf } from "../words.js";
import { legend, section } from "./section.js";

/** Requests over time, and those that the chosen limit limits. */
export function trafficSection(choice: Choice, { startMs, stepMs, requests }: Timeline): HTMLElement {
  let limited: number[] = [];
  const readout = h("p", { class: "pointed quiet" });
  const legendLimited = h("span");
  const moment = (interval: number): string => `${spanOf(startMs + interval * stepMs, startMs + (interval + 1) * stepMs, stepMs)} UTC`;
  const readOut = (interval: number | undefined): void => {
    if (interval === undefined) {
      const busiest = requests.indexOf(requests.reduce((a, b) => Math.max(a, b), 0));
      const most = plural(requests[busiest] as number, "request");
      say(readout, `Each step is ${duration(stepMs)}. The busiest had ${most}: ${moment(busiest)}.`);
      return;
    }
    const all = requests[interval] as number;
    const some = limited[interval] ?? 0;
    say(readout, `${moment(interval)}: ${plural(all, "request")}, ${count(some)} limited (${percent(some, all)}).`);
  };
  const chart = new Chart({
    height: 220,
    axis: (value) => (Number.isInteger(value) ? shortCount(value) : ""),
    time: axisTime,
    utc: true,
    atLeast: 1,
    onPoint: readOut,
  });
  const table = new FiguresTable("Requests over time", "The same as a table");
  choice.follow(() => {
    const { point, rule } = choice;
    limited = new Array<number>(requests.length).fill(0);
    const pairs = point?.limitedAt ?? [];
    for (let i = 0; i < pairs.length; i += 2) limited[pairs[i] as number] = pairs[i + 1] as number;
    chart.show({
      startMs,
      stepMs,
      layers: [
        { values: requests, fill: "var(--allowed)", stroke: "var(--allowed-ink)" },
        { values: limited, fill: "var(--limited)", stroke: "var(--limited-ink)" },
      ],
    });
    say(legendLimited, rule?.grid === undefined || point === undefined ? "limited" : `limited by ${limitText(rule.grid, point.limit)}`);
    readOut(undefined);
    table.show(() => ({
      columns: ["Time (UTC)", "Requests", "Limited"],
      rows: requests.flatMap((all, i) => (all === 0 ? [] : [[moment(i), count(all), count(limited[i] ?? 0)]])),
    }));
  });
  return section(
    "traffic",
    "Requests over time",
    legend(["allowed", "all requests"], ["limited", legendLimited]),
    chart.element,
    readout,
    table.element,
  );
}
