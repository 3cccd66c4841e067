import { prepared, type Theme } from "./theme.js";
import type { Scale } from "./timeline.js";

export const rulerHeight = 44;

/** Draws the time, and a stroke for each request. */
export function drawRuler(canvas: HTMLCanvasElement, width: number, times: readonly number[], scale: Scale, theme: Theme): void {
  const context = prepared(canvas, width, rulerHeight, theme.font);
  if (context === undefined) return;
  const stepMs = stepFor(scale.spanMs, width);
  context.textBaseline = "middle";
  for (let ms = 0; ms <= scale.spanMs; ms += stepMs) {
    const at = (ms / scale.spanMs) * width;
    context.textAlign = ms === 0 ? "left" : at > width - 20 ? "right" : "center";
    context.fillStyle = theme.quiet;
    context.fillText(clock(ms), at, 9);
    context.fillStyle = theme.strong;
    context.fillRect(Math.min(Math.round(at), width - 1), 17, 1, 4);
  }
  context.fillStyle = theme.text;
  // Many requests in one place make a darker stroke.
  context.globalAlpha = 0.45;
  for (const ms of times) context.fillRect(((ms - scale.startMs) / scale.spanMs) * width - 0.75, 24, 1.5, 16);
  context.globalAlpha = 1;
}

const steps = [100, 500, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21_600, 43_200, 86_400].map((step, i) =>
  i < 2 ? step : step * 1000,
);

/** The least round time that leaves its labels room. */
function stepFor(spanMs: number, width: number): number {
  const least = (spanMs * 64) / width;
  return steps.find((step) => step >= least) ?? Math.ceil(least / 86_400_000) * 86_400_000;
}

/** A time since the start: `12 s`, `1:30`, `2:00:00`. */
export function clock(ms: number, tenths = false): string {
  const seconds = ms / 1000;
  if (seconds < 60) return `${tenths ? seconds.toFixed(1) : Math.round(seconds * 10) / 10} s`;
  const two = (number: number): string => String(Math.floor(number)).padStart(2, "0");
  const minutes = `${two((seconds % 3600) / 60)}:${two(seconds % 60)}`;
  return seconds < 3600 ? minutes.replace(/^0/, "") : `${Math.floor(seconds / 3600)}:${minutes}`;
}
