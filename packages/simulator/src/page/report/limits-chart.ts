import { svg } from "@floodgate/pages/dom";
import { count, shortCount } from "@floodgate/pages/format";
import type { Grid } from "./model.js";

const left = 46;
const right = 14;
const top = 40;
const clientsHeight = 170;
const gap = 34;
const requestsHeight = 96;
const bottom = 46;

/** The height of the drawing, and where the line of the chosen limit ends. */
export const height: number = top + clientsHeight + gap + requestsHeight + bottom;
export const lineBottom: number = height - bottom;

interface Bin {
  readonly above: number;
  readonly upTo: number;
  readonly clients: number;
}

/** Clients by the limit that they need, and below it the requests that each limit of the grid limits. */
export class LimitsChart {
  readonly element: SVGSVGElement = svg("svg", { class: "limits-chart", "aria-hidden": "true" });
  #grid: Grid | undefined;
  #bins: readonly Bin[] = [];
  #most = 10;
  #x: (limit: number) => number = () => left;
  #bars: SVGGElement = svg("g");
  #marks: SVGGElement = svg("g");

  /**
   * Draws the axes and the curve of a grid.
   * @param unit what a limit is, in words.
   */
  draw(grid: Grid, width: number, unit: string): void {
    this.#grid = grid;
    const { needs, points } = grid;
    const most = Math.max(10, needs.at(-1)?.[0] ?? 1, points.at(-1)?.limit ?? 1);
    this.#bins = binned(needs, binEnds(most));
    this.#most = most * 1.15;
    this.#x = logScale(this.#most, left, width - right);
    this.#bars = svg("g");
    this.#marks = svg("g");
    this.element.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.element.setAttribute("width", String(width));
    this.element.setAttribute("height", String(height));
    this.element.replaceChildren(
      ...this.#clientsAxis(width),
      this.#bars,
      ...this.#curve(width),
      this.#marks,
      ...this.#limitAxis(width, unit),
    );
  }

  at(limit: number): number {
    return this.#x(limit);
  }

  nearest(position: number): number {
    const points = this.#grid?.points ?? [];
    let best = 0;
    points.forEach(({ limit }, i) => {
      if (Math.abs(this.at(limit) - position) < Math.abs(this.at((points[best] as { limit: number }).limit) - position)) best = i;
    });
    return best;
  }

  /** Shows what a limit touches. */
  mark(point: number): void {
    const grid = this.#grid;
    const chosen = grid?.points[point];
    if (grid === undefined || chosen === undefined) return;
    const x = this.at(chosen.limit);
    this.#bars.replaceChildren(...this.#bins.flatMap((bin) => this.#bar(bin, chosen.limit)));
    const y = this.#requestsY(grid)(chosen.limited);
    const own = grid.points[grid.own];
    const line = (name: string, at: number, y1: number): SVGElement => svg("line", { class: name, x1: at, x2: at, y1, y2: lineBottom });
    this.#marks.replaceChildren(
      ...(own === undefined || own === chosen ? [] : [line("own", this.at(own.limit), top - 8)]),
      line("chosen", x, top - 12),
      svg("circle", { class: "chosen-point", cx: x, cy: y, r: 5 }),
    );
  }

  #bar({ above, upTo, clients }: Bin, limit: number): SVGElement[] {
    const from = this.at(above);
    const to = this.at(upTo);
    const line = Math.max(from, Math.min(to, this.at(limit)));
    const y = this.#clientsY(clients);
    const barHeight = top + clientsHeight - y;
    const part = (x1: number, x2: number, name: string): SVGElement[] =>
      x2 - x1 < 0.5 ? [] : [svg("rect", { class: name, x: x1, y, width: x2 - x1, height: barHeight })];
    const inset = to - from > 4 ? 1 : 0;
    return [...part(from + inset, Math.min(line, to - inset), "allowed"), ...part(Math.max(line, from + inset), to - inset, "limited")];
  }

  /** One client must be seen beside thousands, so the axis is logarithmic, and a bar of one client has a height. */
  #clientsY(clients: number): number {
    const most = Math.max(2, ...this.#bins.map((bin) => bin.clients));
    return top + clientsHeight - (clientsHeight * Math.log(clients / 0.5)) / Math.log(most / 0.5);
  }

  #requestsY({ points }: Grid): (limited: number) => number {
    const most = Math.max(1, ...points.map(({ limited }) => limited));
    return (limited) => lineBottom - (requestsHeight * limited) / most;
  }

  #clientsAxis(width: number): SVGElement[] {
    const most = Math.max(2, ...this.#bins.map(({ clients }) => clients));
    const ticks = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000].filter((tick) => tick <= most);
    if (ticks.length === 1 && most > 2) ticks.push(most);
    return [
      svg("text", { class: "title", x: 0, y: 12 }, "Clients, by the limit that they need"),
      ...ticks.flatMap((tick) => axisLine(width, this.#clientsY(tick), shortCount(tick))),
    ];
  }

  #curve(width: number): SVGElement[] {
    const { points } = this.#grid as Grid;
    const yOf = this.#requestsY(this.#grid as Grid);
    const most = Math.max(1, ...points.map(({ limited }) => limited));
    const path = points.map(({ limit, limited }, i) => `${i === 0 ? "M" : "L"}${this.at(limit)} ${yOf(limited)}`).join("");
    const ends = [this.at((points.at(-1) as { limit: number }).limit), this.at((points[0] as { limit: number }).limit)];
    return [
      svg("text", { class: "title", x: 0, y: top + clientsHeight + gap - 10 }, "Requests limited, at each limit"),
      ...linearTicks(most).flatMap((tick) => axisLine(width, yOf(tick), shortCount(tick))),
      svg("path", { class: "under", d: `${path}L${ends[0]} ${lineBottom}L${ends[1]} ${lineBottom}Z` }),
      svg("path", { class: "curve", d: path }),
      ...points.map(({ limit, limited }) => svg("circle", { class: "tried", cx: this.at(limit), cy: yOf(limited), r: 2 })),
    ];
  }

  #limitAxis(width: number, unit: string): SVGElement[] {
    const ticks = logTicks(this.#most, width - left - right).flatMap((tick) => {
      const x = this.at(tick);
      const anchor = x > width - right - 12 ? "end" : "middle";
      return [
        svg("line", { class: "tick", x1: x, x2: x, y1: lineBottom, y2: lineBottom + 4 }),
        svg("line", { class: "tick", x1: x, x2: x, y1: top + clientsHeight, y2: top + clientsHeight + 3 }),
        svg("text", { x, y: lineBottom + 18, "text-anchor": anchor }, tick < 10_000 ? count(tick) : shortCount(tick)),
      ];
    });
    return [...ticks, svg("text", { x: width - right, y: lineBottom + 38, "text-anchor": "end" }, unit)];
  }
}

function axisLine(width: number, y: number, text: string): SVGElement[] {
  return [
    svg("line", { class: "grid", x1: left, x2: width - right, y1: y, y2: y }),
    svg("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, text),
  ];
}

function binned(needs: Grid["needs"], ends: readonly number[]): Bin[] {
  const counts = new Array<number>(ends.length).fill(0);
  let bin = 1;
  for (const [need, clients] of needs) {
    while (bin < ends.length - 1 && need > (ends[bin] as number)) bin++;
    (counts[bin] as number) += clients;
  }
  return counts.flatMap((clients, i) => (clients === 0 ? [] : { above: ends[i - 1] as number, upTo: ends[i] as number, clients }));
}

/** Where a logarithmic axis begins: a little before 1. */
const least = 0.7;

/** Positions on a logarithmic axis. Values up to `least` are at `from`. */
function logScale(most: number, from: number, to: number): (value: number) => number {
  const span = Math.log(most / least);
  return (value) => from + ((to - from) * Math.log(Math.max(least, value) / least)) / span;
}

/** Round values on a logarithmic axis: 1, 2, 5, 10, … or only powers of ten where there is little room. */
function logTicks(most: number, room: number): number[] {
  const decades = Math.log10(most / least);
  const steps = room / decades > 150 ? [1, 2, 5] : [1];
  const every = room / decades < 45 ? Math.ceil(45 / (room / decades)) : 1;
  const ticks: number[] = [];
  for (let power = 0; 10 ** power <= most; power++) {
    if (power % every === 0) ticks.push(...steps.map((step) => step * 10 ** power).filter((tick) => tick <= most));
  }
  return ticks;
}

/** A few round values from 0 on a linear axis. */
function linearTicks(most: number): number[] {
  const rough = Math.max(1, most) / 2;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, ([5, 2].find((factor) => factor * unit <= rough) ?? 1) * unit);
  const ticks: number[] = [];
  for (let tick = 0; tick <= most; tick += step) ticks.push(tick);
  return ticks;
}

/** Upper ends of the bins of a histogram over a logarithmic axis, up to `most`. A bin holds what is above the end before it. */
function binEnds(most: number): number[] {
  const ends = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
  for (let unit = 10; (ends.at(-1) as number) < most; unit *= 10) {
    for (const factor of [1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8, 10])
      if ((ends.at(-1) as number) < most) ends.push(Math.round(factor * unit));
  }
  return ends;
}
