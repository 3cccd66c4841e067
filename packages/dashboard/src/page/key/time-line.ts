import { svg } from "@floodgate/pages/dom";

export const width = 360;
export const floor = 96;

/** Where a moment is on the line, from the left. */
export function scale(fromMs: number, toMs: number): (atMs: number) => number {
  return (atMs) => ((Math.min(toMs, Math.max(fromMs, atMs)) - fromMs) / (toMs - fromMs || 1)) * width;
}

/** A drawing with a time line below. */
export function timeLine(className: string, ...children: (Element | undefined)[]): SVGElement {
  return svg(
    "svg",
    { viewBox: `-2 0 ${width + 4} ${floor + 8}`, class: `drawing wide ${className}`, "aria-hidden": "true", preserveAspectRatio: "none" },
    ...children,
    svg("path", { class: "wall", d: `M0 ${floor}H${width}` }),
  );
}
