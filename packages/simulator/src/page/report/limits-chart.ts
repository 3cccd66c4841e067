import { axisLine, left } from "@floodgate/pages/chart";
import { fill, path, svg } from "@floodgate/pages/dom";
import { count, shortCount } from "@floodgate/pages/format";
import { linearTicks } from "@floodgate/pages/ticks";
import type { Grid } from "./model.js";

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
  /** The place of a limit. */
  at: (limit: number) => number = () => left;
  /** Shows what a limit touches. */
  mark: (point: number) => void = () => undefined;
  #grid: Grid | undefined;

  /**
   * Draws the axes and the curve of a grid.
   * @param unit what a limit is, in words.
   */
  draw(grid: Grid, width: number, unit: string): void {
    this.#grid = grid;
    const { needs, points, own } = grid;
    const most = Math.max(10, needs.at(-1)?.[0] ?? 1, points.at(-1)?.limit ?? 1);
    const bins = binned(needs, binEnds(most));
    const x = logScale(most * 1.15, left, width - right);
    const maxClients = Math.max(2, ...bins.map(({ clients }) => clients));
    // One client must be seen beside thousands, so the axis is logarithmic, and a bar of one client has a height.
    const clientsY = (clients: number): number =>
      top + clientsHeight - (clientsHeight * Math.log(clients / 0.5)) / Math.log(maxClients / 0.5);
    const maxLimited = Math.max(1, ...points.map(({ limited }) => limited));
    const requestsY = (limited: number): number => lineBottom - (requestsHeight * limited) / maxLimited;
    const bars = svg("g");
    const marks = svg("g");
    this.at = x;
    this.mark = (point) => {
      const chosen = points[point];
      if (chosen === undefined) return;
      const line = (name: string, limit: number, y1: number): SVGElement =>
        svg("line", { class: name, x1: x(limit), x2: x(limit), y1, y2: lineBottom });
      const unchosen = own === point ? undefined : points[own];
      fill(bars, ...bins.flatMap((bin) => bar(bin, x, clientsY(bin.clients), chosen.limit)));
      fill(
        marks,
        unchosen && line("own", unchosen.limit, top - 8),
        line("chosen", chosen.limit, top - 12),
        svg("circle", { class: "chosen-point", cx: x(chosen.limit), cy: requestsY(chosen.limited), r: 5 }),
      );
    };
    const clientTicks = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000].filter((tick) => tick <= maxClients);
    if (clientTicks.length === 1 && maxClients > 2) clientTicks.push(maxClients);
    const curve = points.map(({ limit, limited }, i) => `${i === 0 ? "M" : "L"}${x(limit)} ${requestsY(limited)}`).join("");
    const [first, last] = [x(points[0]?.limit ?? 1), x(points.at(-1)?.limit ?? 1)];
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
      this.element.setAttribute(name, String(value));
    }
    fill(
      this.element,
      svg("text", { class: "title", x: 0, y: 12 }, "Clients, by the limit that they need"),
      ...clientTicks.flatMap((tick) => axisLine(left, width - right, clientsY(tick), shortCount(tick))),
      bars,
      svg("text", { class: "title", x: 0, y: top + clientsHeight + gap - 10 }, "Requests limited, at each limit"),
      ...linearTicks(maxLimited, 4, 1).flatMap((tick) => axisLine(left, width - right, requestsY(tick), shortCount(tick))),
      path("under", `${curve}L${last} ${lineBottom}L${first} ${lineBottom}Z`),
      path("curve", curve),
      ...points.map(({ limit, limited }) => svg("circle", { class: "tried", cx: x(limit), cy: requestsY(limited), r: 2 })),
      marks,
      ...logTicks(most * 1.15, width - left - right).flatMap((tick) => limitTick(tick, x(tick), width)),
      svg("text", { x: width - right, y: lineBottom + 38, "text-anchor": "end" }, unit),
    );
  }

  /** The number of the point that is nearest to a place. */
  nearest(position: number): number {
    const distances = this.#grid?.points.map(({ limit }) => Math.abs(this.at(limit) - position)) ?? [];
    return Math.max(0, distances.indexOf(Math.min(...distances)));
  }
}

/** The clients of a bin: those that a limit would not touch, and those that it would. */
function bar({ above, upTo }: Bin, x: (limit: number) => number, y: number, limit: number): SVGElement[] {
  const inset = x(upTo) - x(above) > 4 ? 1 : 0;
  const from = x(above) + inset;
  const to = x(upTo) - inset;
  const line = Math.max(from, Math.min(to, x(limit)));
  const part = (x1: number, x2: number, name: string): SVGElement[] =>
    x2 - x1 < 0.5 ? [] : [svg("rect", { class: name, x: x1, y, width: x2 - x1, height: top + clientsHeight - y })];
  return [...part(from, line, "allowed"), ...part(line, to, "limited")];
}

function limitTick(limit: number, x: number, width: number): SVGElement[] {
  const anchor = x > width - right - 12 ? "end" : "middle";
  return [
    svg("line", { class: "tick", x1: x, x2: x, y1: lineBottom, y2: lineBottom + 4 }),
    svg("line", { class: "tick", x1: x, x2: x, y1: top + clientsHeight, y2: top + clientsHeight + 3 }),
    svg("text", { x, y: lineBottom + 18, "text-anchor": anchor }, limit < 10_000 ? count(limit) : shortCount(limit)),
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

/** Upper ends of the bins of a histogram over a logarithmic axis, up to `most`. A bin holds what is above the end before it. */
function binEnds(most: number): number[] {
  const ends = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
  for (let unit = 10; (ends.at(-1) as number) < most; unit *= 10) {
    for (const factor of [1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8, 10])
      if ((ends.at(-1) as number) < most) ends.push(Math.round(factor * unit));
  }
  return ends;
}
