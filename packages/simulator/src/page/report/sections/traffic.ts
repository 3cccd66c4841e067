import { h, say } from "@floodgate/pages/dom";
import { TrafficChart } from "../draw/traffic-chart.js";
import { type Choice, limitText, type Timeline } from "../model.js";
import { count, duration, percent, plural, spanOf } from "../words.js";
import { section } from "./section.js";

/** Requests over time, and those that the chosen limit limits. */
export function trafficSection(choice: Choice, timeline: Timeline): HTMLElement {
  const { startMs, stepMs, requests } = timeline;
  let limited: number[] = [];
  const readout = h("p", { class: "pointed" });
  const legendLimited = h("span");
  const say1 = (interval: number | undefined): void => {
    if (interval === undefined) {
      const busiest = requests.indexOf(requests.reduce((a, b) => Math.max(a, b), 0));
      say(
        readout,
        `Each step is ${duration(stepMs)}. The busiest had ${plural(requests[busiest] as number, "request")}: ${moment(busiest)}.`,
      );
      return;
    }
    const all = requests[interval] as number;
    const some = limited[interval] ?? 0;
    say(readout, `${moment(interval)}: ${plural(all, "request")}, ${count(some)} limited (${percent(some, all)}).`);
  };
  const moment = (interval: number): string => `${spanOf(startMs + interval * stepMs, startMs + (interval + 1) * stepMs, stepMs)} UTC`;
  const chart = new TrafficChart(timeline, say1);
  const rows = h("tbody");
  const details = h(
    "details",
    {},
    h("summary", {}, "The same as a table"),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Requests over time" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h("tr", {}, ...["Time (UTC)", "Requests", "Limited"].map((text, i) => h("th", { scope: "col", class: i > 0 && "number" }, text))),
        ),
        rows,
      ),
    ),
  );
  const fillTable = (): void => {
    if (!details.open) return;
    const shown = requests.map((all, i) => [all, i] as const).filter(([all]) => all > 0);
    rows.replaceChildren(
      ...shown.map(([all, i]) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, moment(i)),
          h("td", { class: "number" }, count(all)),
          h("td", { class: "number" }, count(limited[i] ?? 0)),
        ),
      ),
    );
  };
  details.addEventListener("toggle", fillTable);
  choice.follow(() => {
    const { point, rule } = choice;
    limited = new Array<number>(requests.length).fill(0);
    const pairs = point?.limitedAt ?? [];
    for (let i = 0; i < pairs.length; i += 2) limited[pairs[i] as number] = pairs[i + 1] as number;
    chart.show(limited);
    say(legendLimited, rule?.grid === undefined || point === undefined ? "limited" : `limited by ${limitText(rule.grid, point.limit)}`);
    say1(undefined);
    fillTable();
  });
  return section(
    "traffic",
    "Requests over time",
    h(
      "ul",
      { class: "legend" },
      h("li", {}, h("span", { class: "swatch allowed" }), "all requests"),
      h("li", {}, h("span", { class: "swatch limited" }), legendLimited),
    ),
    chart.element,
    readout,
    details,
  );
}
