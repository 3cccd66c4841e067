/*! Has uPlot: Copyright (c) 2025, Leon Sorokin, MIT Licensed, https://github.com/leeoniya/uPlot */

import { h } from "@floodgate/pages/dom";
import uPlot from "uplot";
import type { Timeline } from "../model.js";
import { axisTime, shortCount } from "../words.js";

const chartHeight = 220;

/** All requests over time, and in front of them the limited ones. */
export class TrafficChart {
  readonly element: HTMLElement = h("div", { class: "traffic", "aria-hidden": "true" });
  readonly #timeline: Timeline;
  readonly #onPoint: (interval: number | undefined) => void;
  #limited: readonly number[] = [];
  #plot: uPlot | undefined;

  /** @param onPoint called with the interval that the pointer is in. */
  constructor(timeline: Timeline, onPoint: (interval: number | undefined) => void) {
    this.#timeline = timeline;
    this.#onPoint = onPoint;
    new ResizeObserver(() => this.#fit()).observe(this.element);
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)", "print"]) {
      matchMedia(query).addEventListener("change", () => this.#make());
    }
  }

  show(limited: readonly number[]): void {
    this.#limited = limited;
    if (this.#plot === undefined) this.#make();
    else this.#plot.setData(this.#data());
  }

  #fit(): void {
    const width = this.element.clientWidth;
    if (width === 0) return;
    if (this.#plot === undefined) this.#make();
    else if (this.#plot.width !== width) this.#plot.setSize({ width, height: chartHeight });
  }

  /** A step needs an end, so the last interval is repeated there. */
  #data(): uPlot.AlignedData {
    const { startMs, stepMs, requests } = this.#timeline;
    const times = Array.from({ length: requests.length + 1 }, (_, i) => (startMs + i * stepMs) / 1000);
    return [times, [...requests, requests.at(-1) as number], [...this.#limited, this.#limited.at(-1) ?? 0]];
  }

  #make(): void {
    const width = this.element.clientWidth;
    if (width === 0) return;
    this.#plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim();
    const look = {
      stroke: colour("quiet"),
      font: `12px ${getComputedStyle(document.body).fontFamily}`,
      ticks: { show: false },
      border: { show: false },
    };
    const stepped = uPlot.paths.stepped?.({ align: 1 });
    const series = (fill: string, stroke: string): uPlot.Series => ({
      fill: colour(fill),
      stroke: colour(stroke),
      width: 1,
      points: { show: false },
      ...(stepped !== undefined && { paths: stepped }),
    });
    const { startMs, stepMs, requests } = this.#timeline;
    const options: uPlot.Options = {
      width,
      height: chartHeight,
      padding: [10, 8, 0, 0],
      legend: { show: false },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      cursor: {
        drag: { x: false, y: false, setScale: false },
        y: false,
        points: { show: false },
        dataIdx: (plot, _series, nearest, at) => ((plot.data[0][nearest] ?? 0) > at && nearest > 0 ? nearest - 1 : nearest),
      },
      scales: {
        x: { time: true, range: () => [startMs / 1000, (startMs + requests.length * stepMs) / 1000] },
        y: { range: (_plot, _least, most) => [0, Math.max(1, most * 1.06)] },
      },
      axes: [
        { ...look, size: 28, gap: 6, space: 86, grid: { show: false }, values: (_plot, splits) => labels(splits) },
        {
          ...look,
          size: 46,
          gap: 6,
          space: 40,
          grid: { stroke: colour("line"), width: 1 },
          values: (_plot, splits) => splits.map((value) => (Number.isInteger(value) ? shortCount(value) : "")),
        },
      ],
      series: [{}, series("allowed", "allowed-ink"), series("limited", "limited-ink")],
      hooks: { setCursor: [(plot) => this.#onPoint(this.#pointed(plot))] },
    };
    this.#plot = new uPlot(options, this.#data(), this.element);
  }

  #pointed(plot: uPlot): number | undefined {
    const index = plot.cursor.idxs?.[1] ?? plot.cursor.idx;
    const isInside = (plot.cursor.left ?? -1) >= 0;
    return isInside && index !== null && index !== undefined && index < this.#timeline.requests.length ? index : undefined;
  }
}

function labels(splits: readonly number[]): string[] {
  const stepMs = splits.length > 1 ? ((splits[1] as number) - (splits[0] as number)) * 1000 : 1000;
  return splits.map((seconds) => axisTime(seconds * 1000, stepMs));
}
