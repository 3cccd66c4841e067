import { svg } from "@floodgate/pages/dom";
import { floor, scale, timeLine, width } from "./time-line.js";

export interface CountedWindow {
  readonly startMs: number;
  readonly endMs: number;
  readonly count: number;
  /** The share of it that counts now, from 0 to 1. */
  readonly weight: number;
}

const highest = 12;

/** The stretch of time that a drawing shows: a whole window at least, and now. Windows that counted nothing are not in the list. */
export function stretchOf(windows: readonly CountedWindow[], windowMs: number, nowMs: number): readonly [fromMs: number, toMs: number] {
  const toMs = Math.max(nowMs, ...windows.map(({ endMs }) => endMs));
  return [Math.min(toMs - windowMs, ...windows.map(({ startMs }) => startMs)), toMs];
}

/** Windows side by side: the outline is what each has counted, the filled part is what counts now. The dashed line is the limit. */
export function drawWindows(windows: readonly CountedWindow[], limit: number, windowMs: number, nowMs: number): SVGElement {
  const x = scale(...stretchOf(windows, windowMs, nowMs));
  const most = Math.max(limit, ...windows.map(({ count }) => count), 1);
  const y = (count: number): number => floor - (count / most) * (floor - highest);
  const box = (window: CountedWindow, count: number, className: string): Element | undefined =>
    count <= 0
      ? undefined
      : svg("rect", {
          class: className,
          x: x(window.startMs) + 1,
          y: y(count),
          width: Math.max(1, x(window.endMs) - x(window.startMs) - 2),
          height: floor - y(count),
        });
  return timeLine(
    "windows",
    ...windows.flatMap((window) => [box(window, window.count, "counted"), box(window, window.count * window.weight, "held")]),
    ...windows.slice(1).map(({ startMs }) => svg("path", { class: "edge", d: `M${x(startMs)} ${highest}V${floor}` })),
    svg("path", { class: "limit", d: `M0 ${y(limit)}H${width}` }),
    svg("path", { class: "now", d: `M${x(nowMs)} ${highest - 8}V${floor + 6}` }),
  );
}
