import type { Theme } from "./theme.js";
import { pictureHeight, pictureWidth } from "./theme.js";

/** A pipe in which requests wait. They come in on the left, and leave on the right one by one. */
export function drawQueue(context: CanvasRenderingContext2D, length: number, capacity: number, theme: Theme): void {
  const [left, right, top, bottom] = [8, pictureWidth - 26, pictureHeight / 2 - 13, pictureHeight / 2 + 13];
  context.fillStyle = theme.sunken;
  context.fillRect(left, top, right - left, bottom - top);
  const place = (right - left) / Math.max(capacity, 1);
  context.fillStyle = context.strokeStyle = theme.delayed;
  if (place < 6) {
    const width = Math.min(length / Math.max(capacity, 1), 1) * (right - left);
    context.globalAlpha = 0.4;
    context.fillRect(right - width, top, width, bottom - top);
    context.globalAlpha = 1;
    context.fillRect(right - width, top, 2, bottom - top);
  } else {
    // The first one moves towards the outlet while its turn goes by.
    context.lineWidth = 1.75;
    context.beginPath();
    const radius = Math.min(place / 2 - 1.5, 7);
    const waiting = Math.ceil(length);
    for (let i = 0; i < waiting; i++) {
      const x = Math.max(right - (i + 0.5 - (waiting - length)) * place, left + radius);
      context.moveTo(x + radius, pictureHeight / 2);
      context.arc(x, pictureHeight / 2, radius, 0, 2 * Math.PI);
    }
    context.stroke();
  }
  context.strokeStyle = theme.text;
  context.lineWidth = 1.75;
  context.beginPath();
  context.moveTo(left, top);
  context.lineTo(right, top);
  context.lineTo(right + 8, pictureHeight / 2 - 4);
  context.lineTo(right + 18, pictureHeight / 2 - 4);
  context.moveTo(left, bottom);
  context.lineTo(right, bottom);
  context.lineTo(right + 8, pictureHeight / 2 + 4);
  context.lineTo(right + 18, pictureHeight / 2 + 4);
  context.stroke();
}
