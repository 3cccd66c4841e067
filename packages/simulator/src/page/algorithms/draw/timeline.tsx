import { formatDuration } from "@floodgate/core/rules";
import { count } from "@floodgate/pages/format";
import { timeStep } from "@floodgate/pages/ticks";
import { path } from "@floodgate/pages/view/elements";
import type { VNode } from "preact";
import type { Run } from "../model/run.js";

export interface Scale {
  readonly startMs: number;
  readonly spanMs: number;
  /** The windows in which passing requests are counted. */
  readonly windowMs: number;
  /** The most requests that should pass in a window; undefined if it is not known. */
  readonly limit: number | undefined;
}

const height = 112;

/** The bracket of the busiest window is above; then what would pass; then the rejected requests. */
const top = 22;
const floor = 78;

/** What a policy does with all requests. It does not change while the clock runs. */
export function drawTimeline(run: Run, scale: Scale, width: number): VNode[] {
  const x = (ms: number): number => ((ms - scale.startMs) / scale.spanMs) * width;
  const y = (room: number): number => floor - (room / Math.max(run.policy.quota, 1)) * (floor - top);
  return [
    path("edge", edges(run, scale, x)),
    ...drawRoom(run, scale, width, y),
    ...drawRequests(run, x, y),
    ...drawBusiest(run, scale, width, x),
  ];
}

/** Where windows begin. */
function edges({ policy }: Run, { startMs, spanMs }: Scale, x: (ms: number) => number): string {
  const everyMs =
    policy.algorithm === "fixed-window" ? policy.windowMs : policy.algorithm === "sliding-window-counter" ? policy.bucketMs : 0;
  if (everyMs * 60 < spanMs) return "";
  const first = Math.ceil(startMs / everyMs) * everyMs;
  const starts = Array.from({ length: Math.floor((startMs + spanMs - first) / everyMs) + 1 }, (_, i) => first + i * everyMs);
  return starts.map((ms) => `M${x(ms)} ${top - 4}V${height}`).join("");
}

/** How many requests would pass at each moment, as an area. */
function drawRoom(run: Run, { startMs, spanMs }: Scale, width: number, y: (room: number) => number): VNode[] {
  const steps = Math.max(1, Math.round(width));
  const rooms = run.roomsAt(Array.from({ length: steps + 1 }, (_, i) => Math.floor(startMs + (i * spanMs) / steps)));
  const line = rooms.map((room, i) => `${i === 0 ? "M" : "L"}${(i * width) / steps} ${y(room)}`).join("");
  return [path("area", `${line}V${floor}H0Z`), path("room", line), path("floor", `M0 ${floor}H${width}`)];
}

/**
 * A dot for each allowed request, at the room that it left. One that has to wait is a ring, and a bar until its turn. Rejected ones are
 * crosses, in columns that grow downwards.
 */
function drawRequests(run: Run, x: (ms: number) => number, y: (room: number) => number): VNode[] {
  let [dots, rings, waits, turns] = ["", "", "", ""];
  const columns = new Map<number, number>();
  const step = 7;
  for (const [i, ms] of run.times.entries()) {
    if (!run.allowed[i]) {
      const column = Math.floor(x(ms) / step);
      columns.set(column, (columns.get(column) ?? 0) + 1);
      continue;
    }
    const at = `${x(ms)} ${y(run.rooms[i] as number)}`;
    const delayMs = run.delaysMs[i] as number;
    if (delayMs === 0) dots += `M${at}h0`;
    else {
      rings += `M${at}m-2.6 0a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0 -5.2 0`;
      waits += `M${at}H${x(ms + delayMs)}`;
      turns += `M${at}M${x(ms + delayMs)} ${y(run.rooms[i] as number)}m0 -2.5v5`;
    }
  }
  const crosses = [...columns].flatMap(([column, rejected]) => {
    const gap = Math.min(6.5, (height - floor - 12.8) / Math.max(rejected - 1, 1));
    const places = Array.from({ length: rejected }, (_, i) => floor + 7 + i * gap);
    return places.map((down) => `M${(column + 0.5) * step} ${down}m-2.4 -2.4l4.8 4.8m0 -4.8l-4.8 4.8`);
  });
  return [path("waits", waits), path("turns", turns), path("rings", rings), path("dots", dots), path("crosses", crosses.join(""))];
}

/** A bracket over the window in which most requests passed. */
function drawBusiest(run: Run, { windowMs, limit }: Scale, width: number, x: (ms: number) => number): VNode[] {
  const { most, maxAtMs } = run.countsAt(Number.POSITIVE_INFINITY);
  if (most === 0) return [];
  const to = Math.min(x(maxAtMs), width - 0.5);
  const from = Math.max(x(maxAtMs - windowMs), 0.5);
  const label = `${count(most)} in ${formatDuration(windowMs)}`;
  // About the width of its letters.
  const half = 3.4 * label.length;
  const middle = Math.max(half, Math.min((from + to) / 2, width - half));
  const over = limit !== undefined && most > limit ? "over" : "";
  return [
    path(`bracket ${over}`, `M${from} ${top - 3}v-5H${to}v5`),
    <text class={over} x={middle} y={12.5} text-anchor="middle">
      {label}
    </text>,
  ];
}

export function drawRuler(times: readonly number[], { startMs, spanMs }: Scale, width: number): VNode[] {
  const stepMs = timeStep(spanMs, width);
  const ticks = Array.from({ length: Math.floor(spanMs / stepMs) + 1 }, (_, i) => i * stepMs).flatMap((ms) => {
    const at = (ms / spanMs) * width;
    const anchor = ms === 0 ? "start" : at > width - 20 ? "end" : "middle";
    return [
      <text x={at} y={12.5} text-anchor={anchor}>
        {clock(ms)}
      </text>,
      path("tick", `M${Math.min(at, width - 0.5)} 17v4`),
    ];
  });
  const strokes = new Map<number, number>();
  for (const ms of times) {
    const at = Math.round(((ms - startMs) / spanMs) * width);
    strokes.set(at, (strokes.get(at) ?? 0) + 1);
  }
  // Many requests in one place make a darker stroke.
  return [...ticks, ...[...strokes].map(([at, many]) => <path class="sent" d={`M${at} 24v16`} opacity={1 - 0.55 ** many} />)];
}

/** A time since the start: `12 s`, `1:30`, `2:00:00`. */
export function clock(ms: number, tenths = false): string {
  const seconds = ms / 1000;
  if (seconds < 60) return `${tenths ? seconds.toFixed(1) : Math.round(seconds * 10) / 10} s`;
  const two = (number: number): string => String(Math.floor(number)).padStart(2, "0");
  const minutes = `${two((seconds % 3600) / 60)}:${two(seconds % 60)}`;
  return seconds < 3600 ? minutes.replace(/^0/, "") : `${Math.floor(seconds / 3600)}:${minutes}`;
}
