import type { StateView } from "@floodgate/core";
import type { Theme } from "./theme.js";
import { pictureHeight, pictureWidth } from "./theme.js";

/** The window, and the entries that move through it and leave on the left. */
export function drawLog(
  context: CanvasRenderingContext2D,
  units: Extract<StateView, { kind: "log" }>["units"],
  windowMs: number,
  nowMs: number,
  theme: Theme,
): void {
  const [left, right, top, bottom] = [10, pictureWidth - 10, 16, pictureHeight - 14];
  context.fillStyle = theme.soft;
  context.fillRect(left, top, right - left, bottom - top);
  context.fillStyle = theme.accent;
  const width = units.length > 40 ? 1 : 2.5;
  for (const { atMs } of units) {
    const x = right - ((nowMs - atMs) / windowMs) * (right - left);
    context.fillRect(x - width / 2, top + 4, width, bottom - top - 8);
  }
  context.strokeStyle = theme.text;
  context.lineWidth = 1.75;
  context.strokeRect(left, top, right - left, bottom - top);
  context.fillStyle = theme.quiet;
  context.textBaseline = "alphabetic";
  context.textAlign = "right";
  context.fillText("now", right, bottom + 11);
  context.textAlign = "left";
  context.fillText("leaves", left, bottom + 11);
}
