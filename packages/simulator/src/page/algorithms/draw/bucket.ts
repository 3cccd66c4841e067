import type { Theme } from "./theme.js";
import { pictureHeight, pictureWidth } from "./theme.js";

/** A bucket with its tokens. Up to twenty are drawn one by one. */
export function drawBucket(context: CanvasRenderingContext2D, level: number, capacity: number, theme: Theme): void {
  const [left, right, top, bottom, slant] = [pictureWidth / 2 - 44, pictureWidth / 2 + 44, 6, pictureHeight - 4, 9];
  const inside = new Path2D();
  inside.moveTo(left, top);
  inside.lineTo(left + slant, bottom - 4);
  inside.quadraticCurveTo(left + slant + 1, bottom, left + slant + 6, bottom);
  inside.lineTo(right - slant - 6, bottom);
  inside.quadraticCurveTo(right - slant - 1, bottom, right - slant, bottom - 4);
  inside.lineTo(right, top);
  const room = bottom - top - 4;
  const surface = bottom - (Math.max(level, 0) / Math.max(capacity, 1)) * room;
  context.save();
  context.clip(inside);
  context.fillStyle = theme.soft;
  context.fillRect(left, surface, right - left, bottom - surface);
  context.fillStyle = theme.accent;
  context.fillRect(left, surface - 0.75, right - left, 1.5);
  context.restore();
  if (capacity <= 20) drawTokens(context, Math.floor(level), capacity, bottom, room, theme);
  context.strokeStyle = theme.text;
  context.lineWidth = 1.75;
  context.stroke(inside);
}

/** Two tokens in a row, from the bottom. */
function drawTokens(context: CanvasRenderingContext2D, tokens: number, capacity: number, bottom: number, room: number, theme: Theme): void {
  const each = capacity <= 5 ? 1 : capacity <= 10 ? 2 : 4;
  const height = (room * each) / capacity;
  const radius = Math.min(height / 2 - 0.75, 6);
  context.fillStyle = theme.accent;
  context.beginPath();
  for (let i = 0; i < tokens; i++) {
    const x = pictureWidth / 2 + ((i % each) - (each - 1) / 2) * (each === 2 ? 22 : 13);
    const y = bottom - (Math.floor(i / each) + 0.5) * height;
    context.moveTo(x + radius, y);
    context.arc(x, y, Math.max(radius, 1), 0, 2 * Math.PI);
  }
  context.fill();
}
