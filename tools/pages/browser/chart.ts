/*! Has uPlot: Copyright (c) 2025, Leon Sorokin, MIT Licensed, https://github.com/leeoniya/uPlot */

import uPlot from "uplot";
import { h } from "./dom.js";
import { onThemeChange, readTheme, type Theme } from "./theme.js";

/** One line or area of a chart. Later ones are drawn over earlier ones. */
export interface Layer {
  fill(theme: Theme): string | CanvasPattern | undefined;
  stroke(theme: Theme): string;
  readonly width?: number;
  /** Whether it has a line at any number of steps. Else the lines go when they would cover the areas. */
  readonly alwaysLined?: boolean;
  /** Steps by default: a figure counts for its whole interval. */
  readonly shape?: "steps" | "bars" | "line";
}

/** What a chart shows: intervals of one length, and for each of them a value of each layer (null: not known). */
export interface Frame {
  readonly startMs: number;
  readonly stepMs: number;
  readonly layers: readonly (readonly (number | null)[])[];
}

export interface ChartOptions {
  readonly height: number;
  readonly layers: readonly Layer[];
  /** Writes a figure of the vertical axis. */
  readonly axis: (value: number) => string;
  /** Writes a time of the horizontal axis. Times are evenly spaced. */
  readonly time: (ms: number, stepMs: number) => string;
  /** Whether its days begin in UTC. Else they are local. */
  readonly utc?: boolean;
  /** The vertical axis reaches at least up to here. */
  readonly atLeast: number;
  readonly most?: number;
  /** Whether it points together with the other charts. True by default. */
  readonly sync?: boolean;
  /** The interval under the pointer, or `undefined` if it is elsewhere. */
  readonly onPoint?: (index: number | undefined) => void;
}

const linedSteps = 400;

/** A uPlot in the colours of the page, as wide as its place. */
export class Chart {
  readonly element: HTMLElement = h("div", { class: "chart", "aria-hidden": "true" });
  readonly #options: ChartOptions;
  #plot: uPlot | undefined;
  #frame: Frame | undefined;

  constructor(options: ChartOptions) {
    this.#options = options;
    new ResizeObserver(() => this.#fit()).observe(this.element);
    onThemeChange(() => {
      this.#plot?.destroy();
      this.#plot = undefined;
      this.#draw();
    });
  }

  show(frame: Frame): void {
    this.#frame = frame;
    this.#draw();
  }

  get #intervals(): number {
    return this.#frame?.layers[0]?.length ?? 0;
  }

  /** When an interval starts, in seconds since the epoch. */
  #secondsAt(interval: number): number {
    const { startMs, stepMs } = this.#frame as Frame;
    return (startMs + interval * stepMs) / 1000;
  }

  #draw(): void {
    const frame = this.#frame;
    const width = this.element.clientWidth;
    if (frame === undefined || width === 0) return;
    const data = this.#dataOf(frame);
    if (this.#plot === undefined) this.#plot = new uPlot(this.#plotOptions(width), data, this.element);
    else this.#plot.setData(data);
  }

  #fit(): void {
    const width = this.element.clientWidth;
    if (width === 0) return;
    if (this.#plot === undefined) this.#draw();
    else if (this.#plot.width !== width) this.#plot.setSize({ width, height: this.#options.height });
  }

  #plotOptions(width: number): uPlot.Options {
    const { height, layers, axis, time, utc, atLeast, most, sync = true, onPoint } = this.#options;
    const theme = readTheme();
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const look = { stroke: theme.quiet, font, ticks: { show: false }, border: { show: false } };
    return {
      width,
      height,
      padding: [10, 4, 0, 0],
      legend: { show: false },
      ...(utc && { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC") }),
      cursor: {
        ...(sync && { sync: { key: "floodgate", setSeries: false } }),
        drag: { x: false, y: false, setScale: false },
        y: false,
        points: { show: false },
        // The interval that the pointer is in, not the start that it is nearest to.
        dataIdx: (plot, _series, nearest, at) => ((plot.data[0][nearest] ?? 0) > at && nearest > 0 ? nearest - 1 : nearest),
      },
      scales: {
        x: { time: true, range: () => [this.#secondsAt(0), this.#secondsAt(this.#intervals)] },
        y: { range: (_plot, _least, highest) => [0, Math.min(most ?? Number.POSITIVE_INFINITY, Math.max(atLeast, highest * 1.08))] },
      },
      axes: [
        { ...look, size: 26, gap: 6, space: 72, grid: { show: false }, values: (plot, splits) => timesOf(plot, splits, time) },
        {
          ...look,
          size: 46,
          gap: 6,
          space: 34,
          grid: { stroke: theme.line, width: 1 },
          values: (_plot, splits) => splits.map((value) => axis(value)),
        },
      ],
      series: [{}, ...layers.map((layer) => this.#seriesOf(layer, theme))],
      hooks: {
        setCursor: [(plot) => onPoint?.(this.#pointed(plot))],
      },
    };
  }

  #seriesOf(layer: Layer, theme: Theme): uPlot.Series {
    const fill = layer.fill(theme);
    const stroke = layer.stroke(theme);
    const paths = {
      steps: uPlot.paths.stepped?.({ align: 1 }),
      bars: uPlot.paths.bars?.({ align: 1, size: [0.72, 28] }),
      line: uPlot.paths.linear?.(),
    }[layer.shape ?? "steps"];
    return {
      stroke: () => (layer.alwaysLined || this.#intervals < linedSteps ? stroke : "transparent"),
      width: layer.width ?? 1,
      points: { show: false },
      ...(fill !== undefined && { fill: () => fill }),
      ...(paths !== undefined && { paths }),
    };
  }

  #pointed(plot: uPlot): number | undefined {
    const index = plot.cursor.idxs?.[0] ?? plot.cursor.idx;
    const left = plot.cursor.left ?? -1;
    return index === null || index === undefined || left < 0 || index >= this.#intervals ? undefined : index;
  }

  /** A step needs an end: the last interval's figure is repeated there. */
  #dataOf({ layers }: Frame): uPlot.AlignedData {
    const isBars = (layer: number): boolean => this.#options.layers[layer]?.shape === "bars";
    return [
      Array.from({ length: this.#intervals + 1 }, (_, i) => this.#secondsAt(i)),
      ...layers.map((values, i) => [...values, isBars(i) ? null : (values.at(-1) ?? null)]),
    ];
  }
}

/** A time that would be cut off at the right end is left out. */
function timesOf(plot: uPlot, splits: readonly number[], write: ChartOptions["time"]): (string | null)[] {
  const stepMs = 1000 * ((splits[1] ?? 1) - (splits[0] ?? 0));
  const { min = 0, max = 1 } = plot.scales["x"] ?? {};
  return splits.map((at) => {
    const text = write(at * 1000, stepMs);
    const half = 3.5 * text.length;
    return at > (max ?? 1) - (((max ?? 1) - (min ?? 0)) * half) / plot.width ? null : text;
  });
}
