import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { linearTicks, timeStep } from "../ticks.js";
import { useWidth } from "./elements.js";

/** Figures of a chart: an area, its upper edge, or both. Colours are values of CSS. */
export interface Layer {
  /** One for each interval; null: not known. */
  readonly values: readonly (number | null)[];
  readonly fill?: string;
  readonly stroke?: string;
  /** Whether the edge is drawn at any number of intervals. Else it goes when it would cover the areas. */
  readonly alwaysLined?: boolean;
  /** Whether the area is bars. By default, a figure counts for its whole interval. */
  readonly bars?: boolean;
}

/** What a chart shows: intervals of one length. */
interface ChartProps {
  readonly startMs: number;
  readonly stepMs: number;
  /** Later ones are drawn over earlier ones. */
  readonly layers: readonly Layer[];
  readonly height: number;
  /** Writes a figure of the vertical axis. "" leaves it out. */
  readonly axis: (value: number) => string;
  /** Writes a time of the horizontal axis. Times are evenly spaced. */
  readonly time: (ms: number, stepMs: number) => string;
  /** Whether its days begin in UTC. Else they are local. */
  readonly utc?: boolean;
  /** The vertical axis reaches at least up to here. */
  readonly atLeast: number;
  readonly most?: number;
  /** The interval that is marked. */
  readonly marked?: number | undefined;
  /** Called with the place of the pointer, as a share of the width; undefined if it is elsewhere. */
  readonly onPoint: (share: number | undefined) => void;
}

const linedIntervals = 400;
/** The edges of the area that the axes leave. */
export const left = 46;
const right = 4;
const top = 10;
const bottom = 26;

/** The interval at a share of the width of a chart. */
export function intervalAt(share: number | undefined, intervals: number): number | undefined {
  const interval = share === undefined ? -1 : Math.floor(share * intervals);
  return interval >= 0 && interval < intervals ? interval : undefined;
}

/** Figures over time, as wide as their place. */
export function Chart(props: ChartProps): VNode {
  const { layers, height, marked, onPoint } = props;
  const [whole, ref] = useWidth();
  const width = whole - left - right;
  const intervals = layers[0]?.values.length ?? 0;
  const x = (interval: number): number => left + (interval * width) / Math.max(1, intervals);
  const drawn = useMemo(() => (width > 0 ? drawing(props, width, x) : []), [layers, width]);
  const point = ({ clientX, currentTarget }: MouseEvent): void =>
    onPoint((clientX - (currentTarget as Element).getBoundingClientRect().left - left) / width);
  const at = x((marked ?? 0) + 0.5);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the table has what the pointer shows
    <div class="chart" style={{ minHeight: `${height}px` }} ref={ref} onMouseMove={point} onMouseLeave={() => onPoint(undefined)}>
      <svg aria-hidden="true" viewBox={`0 0 ${whole} ${height}`}>
        {drawn}
        {marked !== undefined && <line class="cursor" x1={at} x2={at} y1={top} y2={height - bottom} />}
      </svg>
    </div>
  );
}

function drawing(props: ChartProps, width: number, x: (interval: number) => number): VNode[] {
  const { layers, height, axis, atLeast, most = Number.POSITIVE_INFINITY } = props;
  const floor = height - bottom;
  const highest = layers.flatMap(({ values }) => values).reduce<number>((max, value) => Math.max(max, value ?? 0), 0);
  const reach = Math.min(most, Math.max(atLeast, highest * 1.08));
  const y = (value: number): number => floor - (value / reach) * (floor - top);
  const levels = linearTicks(reach, (floor - top) / 34).filter((value) => axis(value) !== "");
  return [
    ...levels.flatMap((value) => axisLine(left, left + width, y(value), axis(value))),
    ...layers.flatMap((layer) => paths(layer, x, y)),
    ...times(props, width, x),
  ];
}

function paths({ values, fill, stroke, alwaysLined, bars }: Layer, x: (interval: number) => number, y: (value: number) => number): VNode[] {
  const step = x(1) - x(0);
  const broad = Math.max(1, bars ? Math.min(0.72 * step, 28) : step);
  const at = (place: number): string => place.toFixed(1);
  const floor = y(0);
  const area = values.map((value, i) => (value ? `M${at(x(i))} ${floor}V${at(y(value))}H${at(x(i) + broad)}V${floor}Z` : ""));
  const edge = values.map((value, i) => {
    if (value === null) return "";
    const height = at(y(value));
    return `${(values[i - 1] ?? null) === null ? `M${at(x(i))} ${height}` : `V${height}`}H${at(x(i + 1))}`;
  });
  const isLined = stroke !== undefined && (alwaysLined || values.length < linedIntervals);
  return [
    ...(fill === undefined ? [] : [<path d={area.join("")} fill={fill} />]),
    ...(isLined ? [<path d={edge.join("")} fill="none" stroke={stroke} />] : []),
  ];
}

/** The labels of the horizontal axis. One that would be cut off at the right end is left out. */
function times({ startMs, stepMs, layers, time, utc, height }: ChartProps, width: number, x: (interval: number) => number): VNode[] {
  const spanMs = (layers[0]?.values.length ?? 0) * stepMs;
  const everyMs = Math.max(1000, timeStep(spanMs, width));
  const offsetMs = utc ? 0 : new Date(startMs).getTimezoneOffset() * 60_000;
  const firstMs = Math.ceil((startMs - offsetMs) / everyMs) * everyMs + offsetMs;
  return Array.from({ length: Math.floor((startMs + spanMs - firstMs) / everyMs) + 1 }, (_, i) => firstMs + i * everyMs).flatMap((ms) => {
    const text = time(ms, everyMs);
    const at = x((ms - startMs) / stepMs);
    return at + 3.5 * text.length > left + width + right ? [] : [label(at, height - 10, "middle", text)];
  });
}

const label = (x: number, y: number, anchor: "end" | "middle", text: string): VNode => (
  <text x={x} y={y} text-anchor={anchor}>
    {text}
  </text>
);

/** A line of the vertical axis, and its label. */
export const axisLine = (from: number, to: number, y: number, text: string): VNode[] => [
  <line class="grid" x1={from} x2={to} y1={y} y2={y} />,
  label(from - 8, y + 4, "end", text),
];
