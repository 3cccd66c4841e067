import { fill, h, svg } from "./dom.js";
import { linearTicks, timeStep } from "./ticks.js";

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
export interface Frame {
  readonly startMs: number;
  readonly stepMs: number;
  /** Later ones are drawn over earlier ones. */
  readonly layers: readonly Layer[];
}

interface ChartOptions {
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
  /** Called with the interval under the pointer, or `undefined` if it is elsewhere. */
  readonly onPoint: (interval: number | undefined) => void;
}

const linedIntervals = 400;
/** The edges of the area that the axes leave. */
export const left = 46;
const right = 4;
const top = 10;
const bottom = 26;

/** Figures over time, as wide as their place. */
export class Chart {
  readonly #svg = svg("svg");
  readonly #cursor = svg("line", { class: "cursor", y1: top, hidden: true });
  readonly element: HTMLElement = h("div", { class: "chart", "aria-hidden": "true" }, this.#svg);
  readonly #options: ChartOptions;
  #frame: Frame | undefined;
  /** Where the pointer is, in pixels from the left. */
  #pointer: number | undefined;

  constructor(options: ChartOptions) {
    this.#options = options;
    this.element.style.minHeight = `${options.height}px`;
    new ResizeObserver(() => this.#draw()).observe(this.element);
    this.element.addEventListener("mousemove", ({ clientX }) => this.#point(clientX - this.element.getBoundingClientRect().left));
    this.element.addEventListener("mouseleave", () => this.#point(undefined));
  }

  show(frame: Frame): void {
    this.#frame = frame;
    this.#draw();
  }

  /** Marks an interval. */
  mark(interval: number | undefined): void {
    const x = this.#x((interval ?? 0) + 0.5);
    this.#cursor.toggleAttribute("hidden", interval === undefined);
    for (const name of ["x1", "x2"]) this.#cursor.setAttribute(name, String(x));
  }

  get #intervals(): number {
    return this.#frame?.layers[0]?.values.length ?? 0;
  }

  get #width(): number {
    return this.element.clientWidth - left - right;
  }

  #x(interval: number): number {
    return left + (interval * this.#width) / Math.max(1, this.#intervals);
  }

  #point(pointer: number | undefined): void {
    this.#pointer = pointer;
    const interval = pointer === undefined ? -1 : Math.floor(((pointer - left) / this.#width) * this.#intervals);
    const pointed = interval >= 0 && interval < this.#intervals ? interval : undefined;
    this.mark(pointed);
    this.#options.onPoint(pointed);
  }

  #draw(): void {
    if (this.#frame === undefined || this.#width <= 0) return;
    const { height, axis, atLeast, most = Number.POSITIVE_INFINITY } = this.#options;
    const { layers } = this.#frame;
    const floor = height - bottom;
    const highest = layers.flatMap(({ values }) => values).reduce<number>((max, value) => Math.max(max, value ?? 0), 0);
    const reach = Math.min(most, Math.max(atLeast, highest * 1.08));
    const y = (value: number): number => floor - (value / reach) * (floor - top);
    const levels = linearTicks(reach, (floor - top) / 34).filter((value) => axis(value) !== "");
    this.#svg.setAttribute("viewBox", `0 0 ${this.element.clientWidth} ${height}`);
    this.#cursor.setAttribute("y2", String(floor));
    fill(
      this.#svg,
      ...levels.flatMap((value) => axisLine(left, left + this.#width, y(value), axis(value))),
      ...layers.flatMap((layer) => this.#paths(layer, y, floor)),
      ...this.#times(),
      this.#cursor,
    );
    if (this.#pointer !== undefined) this.#point(this.#pointer);
  }

  #paths({ values, fill, stroke, alwaysLined, bars }: Layer, y: (value: number) => number, floor: number): SVGElement[] {
    const step = this.#width / values.length;
    const broad = Math.max(1, bars ? Math.min(0.72 * step, 28) : step);
    const at = (place: number): string => place.toFixed(1);
    const area = values.map((value, i) => (value ? `M${at(this.#x(i))} ${floor}V${at(y(value))}H${at(this.#x(i) + broad)}V${floor}Z` : ""));
    const edge = values.map((value, i) => {
      if (value === null) return "";
      const height = at(y(value));
      return `${(values[i - 1] ?? null) === null ? `M${at(this.#x(i))} ${height}` : `V${height}`}H${at(this.#x(i + 1))}`;
    });
    const isLined = stroke !== undefined && (alwaysLined || values.length < linedIntervals);
    return [
      ...(fill === undefined ? [] : [svg("path", { d: area.join(""), fill })]),
      ...(isLined ? [svg("path", { d: edge.join(""), fill: "none", stroke })] : []),
    ];
  }

  /** The labels of the horizontal axis. One that would be cut off at the right end is left out. */
  #times(): SVGElement[] {
    const { startMs, stepMs } = this.#frame as Frame;
    const { time, utc, height } = this.#options;
    const spanMs = this.#intervals * stepMs;
    const everyMs = Math.max(1000, timeStep(spanMs, this.#width));
    const offsetMs = utc ? 0 : new Date(startMs).getTimezoneOffset() * 60_000;
    const firstMs = Math.ceil((startMs - offsetMs) / everyMs) * everyMs + offsetMs;
    return Array.from({ length: Math.floor((startMs + spanMs - firstMs) / everyMs) + 1 }, (_, i) => firstMs + i * everyMs).flatMap((ms) => {
      const text = time(ms, everyMs);
      const x = this.#x((ms - startMs) / stepMs);
      return x + 3.5 * text.length > this.element.clientWidth ? [] : [svg("text", { x, y: height - 10, "text-anchor": "middle" }, text)];
    });
  }
}

/** A line of the vertical axis, and its label. */
export function axisLine(from: number, to: number, y: number, text: string): SVGElement[] {
  return [
    svg("line", { class: "grid", x1: from, x2: to, y1: y, y2: y }),
    svg("text", { x: from - 8, y: y + 4, "text-anchor": "end" }, text),
  ];
}
