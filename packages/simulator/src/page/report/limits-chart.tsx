import { count, shortCount } from "@floodgate/pages/format";
import { linearTicks } from "@floodgate/pages/ticks";
import { axisLine, left } from "@floodgate/pages/view/chart";
import { path } from "@floodgate/pages/view/elements";
import type { ComponentChildren, VNode } from "preact";
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

/** The greatest limit of the axis. */
const mostOf = ({ needs, points }: Grid): number => 1.15 * Math.max(10, needs.at(-1)?.[0] ?? 1, points.at(-1)?.limit ?? 1);

/** The place of each limit. */
export const limitScale = (grid: Grid, width: number): ((limit: number) => number) => logScale(mostOf(grid), left, width - right);

interface LimitsChartProps {
  readonly grid: Grid;
  /** The number of the chosen limit. */
  readonly chosen: number;
  readonly width: number;
  /** What a limit is, in words. */
  readonly unit: string;
}

/** Clients by the limit that they need, and below it the requests that each limit of the grid limits. */
export function LimitsChart({ grid, chosen, width, unit }: LimitsChartProps): VNode {
  const { needs, points, own } = grid;
  const bins = binned(needs, binEnds(mostOf(grid) / 1.15));
  const x = limitScale(grid, width);
  const maxClients = Math.max(2, ...bins.map(({ clients }) => clients));
  // One client must be seen beside thousands, so the axis is logarithmic, and a bar of one client has a height.
  const clientsY = (clients: number): number =>
    top + clientsHeight - (clientsHeight * Math.log(clients / 0.5)) / Math.log(maxClients / 0.5);
  const maxLimited = Math.max(1, ...points.map(({ limited }) => limited));
  const requestsY = (limited: number): number => lineBottom - (requestsHeight * limited) / maxLimited;
  const clientTicks = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000].filter((tick) => tick <= maxClients);
  if (clientTicks.length === 1 && maxClients > 2) clientTicks.push(maxClients);
  const curve = points.map(({ limit, limited }, i) => `${i === 0 ? "M" : "L"}${x(limit)} ${requestsY(limited)}`).join("");
  const [first, last] = [x(points[0]?.limit ?? 1), x(points.at(-1)?.limit ?? 1)];
  const { limit = 0, limited = 0 } = points[chosen] ?? {};
  return (
    <svg class="limits-chart" aria-hidden="true" width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
      <text class="title" y={12}>
        Clients, by the limit that they need
      </text>
      {clientTicks.map((tick) => axisLine(left, width - right, clientsY(tick), shortCount(tick)))}
      {bins.map((bin) => bar(bin, x, clientsY(bin.clients), limit))}
      <text class="title" y={top + clientsHeight + gap - 10}>
        Requests limited, at each limit
      </text>
      {linearTicks(maxLimited, 4, 1).map((tick) => axisLine(left, width - right, requestsY(tick), shortCount(tick)))}
      {path("under", `${curve}L${last} ${lineBottom}L${first} ${lineBottom}Z`)}
      {path("curve", curve)}
      {points.map((point) => (
        <circle class="tried" cx={x(point.limit)} cy={requestsY(point.limited)} r={2} />
      ))}
      {own !== chosen && path("own", `M${x(points[own]?.limit ?? 0)} ${top - 8}V${lineBottom}`)}
      {path("chosen", `M${x(limit)} ${top - 12}V${lineBottom}`)}
      <circle class="chosen-point" cx={x(limit)} cy={requestsY(limited)} r={5} />
      {logTicks(mostOf(grid), width - left - right).map((tick) => limitTick(tick, x(tick), width))}
      <text x={width - right} y={lineBottom + 38} text-anchor="end">
        {unit}
      </text>
    </svg>
  );
}

/** The clients of a bin: those that a limit would not touch, and those that it would. */
function bar({ above, upTo }: Bin, x: (limit: number) => number, y: number, limit: number): ComponentChildren {
  const inset = x(upTo) - x(above) > 4 ? 1 : 0;
  const from = x(above) + inset;
  const to = x(upTo) - inset;
  const line = Math.max(from, Math.min(to, x(limit)));
  const part = (x1: number, x2: number, look: string): ComponentChildren =>
    x2 - x1 >= 0.5 && <rect class={look} x={x1} y={y} width={x2 - x1} height={top + clientsHeight - y} />;
  return [part(from, line, "allowed"), part(line, to, "limited")];
}

const limitTick = (limit: number, x: number, width: number): VNode[] => [
  path("tick", `M${x} ${lineBottom}v4M${x} ${top + clientsHeight}v3`),
  <text x={x} y={lineBottom + 18} text-anchor={x > width - right - 12 ? "end" : "middle"}>
    {limit < 10_000 ? count(limit) : shortCount(limit)}
  </text>,
];

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
