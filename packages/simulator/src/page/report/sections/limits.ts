import { h, say } from "@floodgate/pages/dom";
import { count, plural } from "@floodgate/pages/format";
import { listenToKeys, listenToPointer } from "../../algorithms/parts/inputs.js";
import { height, LimitsChart, lineBottom } from "../limits-chart.js";
import { type Choice, type Grid, leastTouching, limitText, policyText } from "../model.js";
import { percent, share as shareText } from "../words.js";
import { section } from "./section.js";

const shares = [0, 0.001, 0.01, 0.05];

/** Other limits for the chosen rule: a line that one drags, and what the limit would do. */
export function limitsSection(choice: Choice): HTMLElement {
  const chart = new LimitsChart();
  const handle = h("div", { class: "handle", role: "slider", tabindex: "0", "aria-orientation": "horizontal" }, h("span", {}));
  const plot = h("div", { class: "plot" }, chart.element, handle);
  const requests = h("b");
  const requestShare = h("span");
  const clients = h("b");
  const clientShare = h("span");
  const limit = h("p", { class: "limit" });
  const change = h("p", { class: "change quiet" });
  const code = h("code");
  const jumps = h("p", { class: "row jumps quiet" });
  const readout = h(
    "div",
    { class: "readout" },
    limit,
    h("p", { class: "touches quiet" }, requests, requestShare),
    h("p", { class: "touches quiet" }, clients, clientShare),
    change,
    h("p", { class: "snippet" }, code),
    jumps,
  );
  const empty = h("p", { class: "empty quiet" });
  const body = h("div", { class: "limits" }, plot, readout);
  const whole = section(
    "limits",
    "Try another limit",
    h(
      "p",
      { class: "lead quiet" },
      "Drag the line. Clients to the right of it would be limited. Each limit was replayed on the whole log, so the numbers are exact; the line stops at limits that were tried. ",
      h("span", { class: "keys" }, "The arrow keys move it, too."),
    ),
    body,
    empty,
  );
  handle.setAttribute("aria-label", "Limit");

  let drawn: Grid | undefined;
  let width = 0;
  const draw = (grid: Grid): void => {
    if (plot.clientWidth === 0 || (drawn === grid && width === plot.clientWidth)) return;
    width = plot.clientWidth;
    if (drawn !== grid) fillJumps(grid);
    drawn = grid;
    chart.draw(grid, width, grid.option === "limit" ? `limit per ${grid.policy["window"]}` : grid.option);
    plot.style.height = `${height}px`;
    handle.style.height = `${lineBottom}px`;
  };
  const fillJumps = (grid: Grid): void => {
    const own = grid.points[grid.own];
    const button = (text: string, point: number): HTMLElement => {
      const made = h("button", { type: "button" }, text);
      made.addEventListener("click", () => choice.choosePoint(point));
      return made;
    };
    const all = choice.rule?.clients ?? 0;
    const targets = shares.map((share) => [share, leastTouching(grid, all, share)] as const);
    jumps.replaceChildren(
      h("span", {}, "The least limit for"),
      ...targets.map(([share, point]) => button(share === 0 ? "no client" : shareText(share), point)),
      h("span", {}, "of the clients, or"),
      button(`back to ${count(own?.limit ?? 0)}`, grid.own),
    );
  };
  const show = (): void => {
    const { rule, point } = choice;
    const grid = rule?.grid;
    body.hidden = grid === undefined;
    empty.hidden = grid !== undefined;
    if (rule === undefined || grid === undefined || point === undefined) {
      say(
        empty,
        rule === undefined || rule.requests === 0
          ? "No request of the log matches this rule."
          : "No other limits were tried for this rule.",
      );
      return;
    }
    draw(grid);
    chart.mark(choice.pointNumber);
    const text = limitText(grid, point.limit);
    say(handle.firstElementChild as Element, count(point.limit));
    handle.style.transform = `translateX(${chart.at(point.limit)}px)`;
    say(limit, text);
    const tell = (figure: Element, share: Element, some: number, all: number, thing: string, what: string): void => {
      say(figure, count(some));
      say(share, ` ${thing}${some === 1 ? "" : "s"} ${what} (${percent(some, all)} of ${count(all)})`);
    };
    tell(requests, requestShare, point.limited, rule.requests, "request", "limited");
    tell(clients, clientShare, point.clientsLimited, rule.clients, "client", "ever limited");
    say(change, changeText(grid, choice.pointNumber));
    say(code, policyText(grid, point.limit));
    handle.setAttribute("aria-valuemin", String(grid.points[0]?.limit));
    handle.setAttribute("aria-valuemax", String(grid.points.at(-1)?.limit));
    handle.setAttribute("aria-valuenow", String(point.limit));
    handle.setAttribute(
      "aria-valuetext",
      `${text}: ${plural(point.limited, "request")} and ${plural(point.clientsLimited, "client")} limited`,
    );
  };
  new ResizeObserver(show).observe(plot);
  choice.follow(show);
  listen(choice, chart, plot, handle);
  return whole;
}

function changeText({ points, own }: Grid, chosen: number): string {
  const before = points[own];
  const after = points[chosen];
  if (before === undefined || after === undefined) return "";
  if (own === chosen) return "This is the limit as it is.";
  const more = after.limited - before.limited;
  if (more === 0) return `It limits as many requests as ${count(before.limit)} does.`;
  return `${plural(Math.abs(more), "request")} ${more > 0 ? "more" : "fewer"} than with ${count(before.limit)}.`;
}

/** Moves the line by pointer and by keyboard. */
function listen(choice: Choice, chart: LimitsChart, plot: HTMLElement, handle: HTMLElement): void {
  listenToPointer(plot, plot, (fraction) => {
    handle.focus({ preventScroll: true });
    const point = chart.nearest(fraction * plot.clientWidth);
    if (point !== choice.pointNumber) choice.choosePoint(point);
  });
  // It would take the focus from the handle.
  plot.addEventListener("mousedown", (event) => event.preventDefault());
  listenToKeys(handle, () => {
    const last = (choice.rule?.grid?.points.length ?? 1) - 1;
    return { now: choice.pointNumber, last, step: 1, page: 5, move: (point) => choice.choosePoint(point) };
  });
}
