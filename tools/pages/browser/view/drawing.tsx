import type { StateView } from "@floodgate/core";
import type { ComponentChildren, VNode } from "preact";
import { path } from "./elements.js";

type Windows = Extract<StateView, { kind: "windows" }>["windows"];
type Units = Extract<StateView, { kind: "log" }>["units"];

/** Draws a state as what it is: a bucket, windows, a log, a queue or held units. Undefined if nothing is remembered. `drawing.css` has its look. */
export function drawState(state: StateView, nowMs: number): VNode | undefined {
  switch (state.kind) {
    case "empty":
      return undefined;
    case "bucket":
      return drawBucket(state.level, state.capacity);
    case "windows":
      return drawWindows(state.windows, state.limit, state.windowMs, nowMs);
    case "log":
      return drawLog(state.units, state.windowMs, nowMs);
    case "queue":
      return state.capacity <= drawnPlaces ? drawPlaces(state.length, state.capacity) : drawBar(state.length, state.capacity);
    case "held":
      return drawBar(state.total, state.limit);
  }
}

function drawing(name: string, viewBox: string, ...children: ComponentChildren[]): VNode {
  return (
    <svg viewBox={viewBox} class={`drawing ${name}`} aria-hidden="true" preserveAspectRatio={name.startsWith("wide") ? "none" : undefined}>
      {children}
    </svg>
  );
}

const top = { y: 10, left: 8, right: 112 };
const bottom = { y: 122, left: 22, right: 98 };

/** A bucket, filled to its level. It is marked for each unit if there are few. */
function drawBucket(level: number, capacity: number): VNode {
  const full = Math.min(1, Math.max(0, capacity === 0 ? 0 : level / capacity));
  const heightAt = (share: number): number => bottom.y - share * (bottom.y - top.y);
  const edge = (side: "left" | "right", share: number): number => bottom[side] + share * (top[side] - bottom[side]);
  const marks = capacity <= 12 ? capacity - 1 : 3;
  const held = `M${edge("left", full)} ${heightAt(full)}H${edge("right", full)}L${bottom.right} ${bottom.y}H${bottom.left}Z`;
  return drawing(
    "bucket",
    "0 0 120 130",
    full > 0 && path("held", held),
    ...Array.from({ length: marks }, (_, i) => (i + 1) / (marks + 1)).map((at) => path("mark", `M${edge("right", at)} ${heightAt(at)}h-9`)),
    path("wall", `M${top.left} ${top.y}L${bottom.left} ${bottom.y}H${bottom.right}L${top.right} ${top.y}`),
  );
}

const drawnPlaces = 40;
const size = 22;
const gap = 5;
const perRow = 10;

/** The places of a queue, the first to leave on the right. */
function drawPlaces(length: number, capacity: number): VNode {
  const span = Math.min(perRow, capacity) * (size + gap) - gap;
  const places = Array.from({ length: capacity }, (_, place) => {
    const [x, y] = [span - size - (place % perRow) * (size + gap), Math.floor(place / perRow) * (size + gap)];
    return <rect class={place < length ? "held" : "free"} x={x} y={y} width={size} height={size} rx={5} />;
  });
  return queue(span, Math.ceil(capacity / perRow) * (size + gap) - gap, places);
}

/** A queue with many places. */
function drawBar(length: number, capacity: number): VNode {
  const width = 340;
  const filled = Math.min(1, length / capacity) * width;
  return queue(
    width,
    size,
    <rect class="free" width={width} height={size} rx={5} />,
    filled > 0 && <rect class="held" x={width - filled} width={filled} height={size} rx={5} />,
  );
}

function queue(width: number, height: number, ...places: ComponentChildren[]): VNode {
  const arrow = path("arrow", `M${width + 5} ${size / 2}h12m-5 -5l5 5l-5 5`);
  return drawing("queue", `-2 -2 ${width + 24} ${height + 4}`, ...places, arrow);
}

const wide = 360;
const floor = 96;
const highest = 12;

/** Where a moment is on the time line, from the left. */
function scale(fromMs: number, toMs: number): (atMs: number) => number {
  return (atMs) => ((Math.min(toMs, Math.max(fromMs, atMs)) - fromMs) / (toMs - fromMs || 1)) * wide;
}

function timeLine(name: string, ...children: ComponentChildren[]): VNode {
  return drawing(`wide ${name}`, `-2 0 ${wide + 4} ${floor + 8}`, ...children, path("wall", `M0 ${floor}H${wide}`));
}

/** The stretch of time that a drawing shows: a whole window at least, and now. Windows that counted nothing are not in the list. */
export function stretchOf(windows: Windows, windowMs: number, nowMs: number): readonly [fromMs: number, toMs: number] {
  const toMs = Math.max(nowMs, ...windows.map(({ endMs }) => endMs));
  return [Math.min(toMs - windowMs, ...windows.map(({ startMs }) => startMs)), toMs];
}

/** Windows side by side: the outline is what each has counted, the filled part is what counts now. The dashed line is the limit. */
function drawWindows(windows: Windows, limit: number, windowMs: number, nowMs: number): VNode {
  const x = scale(...stretchOf(windows, windowMs, nowMs));
  const most = Math.max(limit, ...windows.map(({ count }) => count), 1);
  const y = (count: number): number => floor - (count / most) * (floor - highest);
  const box = ({ startMs, endMs }: Windows[number], count: number, name: string): VNode | undefined => {
    const width = Math.max(1, x(endMs) - x(startMs) - 2);
    return count <= 0 ? undefined : <rect class={name} x={x(startMs) + 1} y={y(count)} width={width} height={floor - y(count)} />;
  };
  return timeLine(
    "windows",
    ...windows.flatMap((window) => [box(window, window.count, "counted"), box(window, window.count * window.weight, "held")]),
    path(
      "edge",
      windows
        .map(({ startMs }) => `M${x(startMs)} ${highest}V${floor}`)
        .slice(1)
        .join(""),
    ),
    path("limit", `M0 ${y(limit)}H${wide}`),
    path("now", `M${x(nowMs)} ${highest - 8}V${floor + 6}`),
  );
}

/** A row of ticks: one for each moment that took units, taller if it took more. */
function drawLog(units: Units, windowMs: number, nowMs: number): VNode {
  const x = scale(nowMs - windowMs, nowMs);
  const most = Math.max(1, ...units.map((entry) => entry.units));
  return timeLine("log", path("tick", units.map((entry) => `M${x(entry.atMs)} ${floor}v${-34 - (entry.units / most) * 46}`).join("")));
}
