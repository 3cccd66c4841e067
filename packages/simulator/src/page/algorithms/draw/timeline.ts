import type { Policy } from "@floodgate/core";
import { formatDuration } from "@floodgate/core/rules";
import { count } from "@floodgate/pages/dom";
import type { Run } from "../model/run.js";
import { prepared, type Theme } from "./theme.js";

/** What all timelines share. */
export interface Scale {
  readonly startMs: number;
  readonly spanMs: number;
  /** The windows in which passing requests are counted. */
  readonly windowMs: number;
  /** The most that should pass in one; undefined if nobody said. */
  readonly limit: number | undefined;
}

export const timelineHeight = 112;

/** The bracket of the busiest window is above; then what would pass; then the rejected requests. */
const top = 22;
const floor = 78;
const dot = 2.6;

/** Draws what a policy does with all requests: once, for it does not change while the clock runs. */
export function drawTimeline(canvas: HTMLCanvasElement, width: number, run: Run, scale: Scale, theme: Theme): void {
  const context = prepared(canvas, width, timelineHeight, theme.font);
  if (context === undefined) return;
  const x = (ms: number): number => ((ms - scale.startMs) / scale.spanMs) * width;
  const y = (room: number): number => floor - (room / Math.max(run.policy.quota, 1)) * (floor - top);
  drawEdges(context, run.policy, scale, x, theme);
  drawRoom(context, width, run, scale, y, theme);
  drawAllowed(context, run, x, y, theme);
  drawLimited(context, run, x, theme);
  drawBusiest(context, width, run, scale, x, theme);
}

/** Where windows begin. */
function drawEdges(context: CanvasRenderingContext2D, policy: Policy, scale: Scale, x: (ms: number) => number, theme: Theme): void {
  const everyMs =
    policy.algorithm === "fixed-window" ? policy.windowMs : policy.algorithm === "sliding-window-counter" ? policy.bucketMs : 0;
  context.strokeStyle = theme.strong;
  context.lineWidth = 1;
  if (everyMs * 60 >= scale.spanMs) {
    context.setLineDash([2, 3]);
    context.beginPath();
    for (let ms = Math.ceil(scale.startMs / everyMs) * everyMs; ms <= scale.startMs + scale.spanMs; ms += everyMs) {
      const at = Math.round(x(ms)) + 0.5;
      context.moveTo(at, top - 4);
      context.lineTo(at, timelineHeight);
    }
    context.stroke();
    context.setLineDash([]);
  }
}

/** How many requests would pass at each moment, as an area. */
function drawRoom(
  context: CanvasRenderingContext2D,
  width: number,
  run: Run,
  scale: Scale,
  y: (room: number) => number,
  theme: Theme,
): void {
  const steps = Math.max(1, Math.round(width * Math.min(devicePixelRatio, 2)));
  const moments = Array.from({ length: steps + 1 }, (_, i) => Math.floor(scale.startMs + (i * scale.spanMs) / steps));
  const rooms = run.roomsAt(moments);
  const path = new Path2D();
  for (const [i, room] of rooms.entries()) {
    const at = (i / steps) * width;
    if (i === 0) path.moveTo(at, y(room));
    else path.lineTo(at, y(room));
  }
  const area = new Path2D(path);
  area.lineTo(width, floor);
  area.lineTo(0, floor);
  context.fillStyle = theme.soft;
  context.fill(area);
  context.strokeStyle = theme.accent;
  context.lineWidth = 1.25;
  context.stroke(path);
  context.strokeStyle = theme.strong;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(0, floor + 0.5);
  context.lineTo(width, floor + 0.5);
  context.stroke();
}

/** A dot for each allowed request, at the room that it left. One that has to wait is a ring, and a bar until its turn. */
function drawAllowed(
  context: CanvasRenderingContext2D,
  run: Run,
  x: (ms: number) => number,
  y: (room: number) => number,
  theme: Theme,
): void {
  const dots = new Path2D();
  const rings = new Path2D();
  const waits = new Path2D();
  const turns = new Path2D();
  for (const [i, ms] of run.times.entries()) {
    if (!run.allowed[i]) continue;
    const [atX, atY] = [x(ms), y(run.rooms[i] as number)];
    const delayMs = run.delaysMs[i] as number;
    const path = delayMs > 0 ? rings : dots;
    path.moveTo(atX + dot, atY);
    path.arc(atX, atY, dot, 0, 2 * Math.PI);
    if (delayMs > 0) {
      waits.moveTo(atX + dot, atY);
      waits.lineTo(x(ms + delayMs), atY);
      turns.moveTo(x(ms + delayMs), atY - 2.5);
      turns.lineTo(x(ms + delayMs), atY + 2.5);
    }
  }
  context.lineWidth = 1;
  context.globalAlpha = 0.35;
  context.strokeStyle = theme.delayed;
  context.stroke(waits);
  context.globalAlpha = 1;
  context.lineWidth = 1.5;
  context.strokeStyle = theme.allowed;
  context.stroke(turns);
  context.fillStyle = theme.ground;
  context.fill(rings);
  context.strokeStyle = theme.delayed;
  context.stroke(rings);
  context.fillStyle = theme.allowed;
  context.fill(dots);
}

/** A cross for each rejected request, in columns that grow downwards. */
function drawLimited(context: CanvasRenderingContext2D, run: Run, x: (ms: number) => number, theme: Theme): void {
  const columns = new Map<number, number>();
  const size = 2.4;
  const step = 7;
  for (const [i, ms] of run.times.entries()) {
    if (run.allowed[i]) continue;
    const column = Math.floor(x(ms) / step);
    columns.set(column, (columns.get(column) ?? 0) + 1);
  }
  context.strokeStyle = theme.limited;
  context.lineWidth = 1.4;
  context.beginPath();
  const height = timelineHeight - floor - 8;
  for (const [column, count] of columns) {
    const at = (column + 0.5) * step;
    const gap = Math.min(6.5, (height - 2 * size) / Math.max(count - 1, 1));
    for (let i = 0; i < count; i++) {
      const down = floor + 7 + i * gap;
      context.moveTo(at - size, down - size);
      context.lineTo(at + size, down + size);
      context.moveTo(at + size, down - size);
      context.lineTo(at - size, down + size);
    }
  }
  context.stroke();
}

/** A bracket over the window in which most requests passed. */
function drawBusiest(
  context: CanvasRenderingContext2D,
  width: number,
  run: Run,
  scale: Scale,
  x: (ms: number) => number,
  theme: Theme,
): void {
  const { most, mostAtMs } = run.countsAt(Number.POSITIVE_INFINITY);
  if (most === 0) return;
  const isOver = scale.limit !== undefined && most > scale.limit;
  const to = Math.min(x(mostAtMs), width - 0.5);
  const from = Math.max(x(mostAtMs - scale.windowMs), 0.5);
  context.strokeStyle = context.fillStyle = isOver ? theme.limited : theme.quiet;
  context.lineWidth = isOver ? 1.75 : 1;
  context.beginPath();
  context.moveTo(from, top - 3);
  context.lineTo(from, top - 8);
  context.lineTo(to, top - 8);
  context.lineTo(to, top - 3);
  context.stroke();
  const label = `${count(most)} in ${formatDuration(scale.windowMs)}`;
  const half = context.measureText(label).width / 2;
  const middle = Math.max(half + 6, Math.min((from + to) / 2, width - half - 6));
  context.save();
  context.fillStyle = theme.ground;
  context.fillRect(middle - half - 4, 2, 2 * half + 8, 13);
  context.restore();
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  if (isOver) context.font = theme.font.replace("500", "700");
  context.fillText(label, middle, 12.5);
  context.font = theme.font;
}
