import { svg } from "@floodgate/pages/dom";

const drawnPlaces = 40;
const size = 22;
const gap = 5;
const perRow = 10;

/** The places of a queue, the first to leave on the right. A queue with many places is one bar. */
export function drawQueue(length: number, capacity: number): SVGElement {
  return capacity <= drawnPlaces ? places(length, capacity) : bar(length, capacity);
}

function places(length: number, capacity: number): SVGElement {
  const columns = Math.min(perRow, capacity);
  const lines = Math.ceil(capacity / perRow);
  const span = columns * (size + gap) - gap;
  return svg(
    "svg",
    { viewBox: `-2 -2 ${span + 24} ${lines * (size + gap) - gap + 4}`, class: "drawing queue", "aria-hidden": "true" },
    ...Array.from({ length: capacity }, (_, place) =>
      svg("rect", {
        class: place < length ? "held" : "free",
        x: span - size - (place % perRow) * (size + gap),
        y: Math.floor(place / perRow) * (size + gap),
        width: size,
        height: size,
        rx: 5,
      }),
    ),
    svg("path", { class: "arrow", d: `M${span + 5} ${size / 2}h12m-5 -5l5 5l-5 5` }),
  );
}

function bar(length: number, capacity: number): SVGElement {
  const width = 340;
  const filled = Math.min(1, length / capacity) * width;
  return svg(
    "svg",
    { viewBox: `-2 -2 ${width + 24} ${size + 4}`, class: "drawing queue", "aria-hidden": "true" },
    svg("rect", { class: "free", x: 0, y: 0, width, height: size, rx: 5 }),
    filled === 0 ? undefined : svg("rect", { class: "held", x: width - filled, y: 0, width: filled, height: size, rx: 5 }),
    svg("path", { class: "arrow", d: `M${width + 5} ${size / 2}h12m-5 -5l5 5l-5 5` }),
  );
}
