import type { FixedWindowPolicy, SlidingWindowCounterPolicy, StateView } from "@floodgate/core";
import type { Theme } from "./theme.js";
import { pictureHeight, pictureWidth } from "./theme.js";

/**
 * Windows with their counts as bars. For a sliding counter, a frame as long as the window slides over them; what is left of it counts no
 * more, and is hatched.
 */
export function drawWindows(
  context: CanvasRenderingContext2D,
  policy: FixedWindowPolicy | SlidingWindowCounterPolicy,
  windows: Extract<StateView, { kind: "windows" }>["windows"],
  nowMs: number,
  theme: Theme,
): void {
  const partMs = policy.algorithm === "fixed-window" ? policy.windowMs : policy.bucketMs;
  const currentMs = Math.floor(nowMs / partMs) * partMs;
  const slides = policy.algorithm === "sliding-window-counter";
  const fromMs = slides ? currentMs - policy.windowMs : currentMs;
  const [left, right, top, bottom] = [8, pictureWidth - 8, 14, pictureHeight - 6];
  const x = (ms: number): number => left + ((ms - fromMs) / (currentMs + partMs - fromMs)) * (right - left);
  const frameMs = nowMs - policy.windowMs;

  context.fillStyle = theme.sunken;
  context.fillRect(left, top, right - left, bottom - top);
  for (const { startMs, endMs, count } of windows) {
    const height = Math.min(count / Math.max(policy.limit, 1), 1) * (bottom - top);
    const inMs = slides && !policy.strict ? Math.min(Math.max(startMs, frameMs), endMs) : startMs;
    context.fillStyle = theme.soft;
    context.fillRect(x(inMs), bottom - height, x(endMs) - x(inMs), height);
    context.fillStyle = theme.accent;
    context.fillRect(x(inMs), bottom - height - 0.75, x(endMs) - x(inMs), 1.5);
    if (inMs > startMs) hatch(context, x(startMs), bottom - height, x(inMs) - x(startMs), height, theme.strong);
    context.fillStyle = theme.text;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const middle = (x(startMs) + x(endMs)) / 2;
    if (x(endMs) - x(startMs) > 18) context.fillText(String(count), middle, Math.min(bottom - height + 9, bottom - 8));
  }
  context.strokeStyle = theme.strong;
  context.lineWidth = 1;
  context.beginPath();
  for (let ms = fromMs; ms <= currentMs + partMs; ms += partMs) {
    context.moveTo(x(ms), top);
    context.lineTo(x(ms), bottom);
  }
  context.stroke();
  context.strokeStyle = theme.text;
  context.lineWidth = 1.75;
  if (slides) context.strokeRect(x(frameMs), top - 5, x(nowMs) - x(frameMs), bottom - top + 8);
  else {
    context.strokeRect(left, top, right - left, bottom - top);
    context.beginPath();
    context.moveTo(x(nowMs), top - 5);
    context.lineTo(x(nowMs), bottom);
    context.stroke();
  }
}

function hatch(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, colour: string): void {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = x - height; at < x + width; at += 5) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}
