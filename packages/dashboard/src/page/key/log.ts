import { svg } from "@floodgate/pages/dom";
import { floor, scale, timeLine } from "./time-line.js";

/** A row of ticks: one for each moment that took units, taller if it took more. */
export function drawLog(units: readonly { readonly atMs: number; readonly units: number }[], windowMs: number, nowMs: number): SVGElement {
  const x = scale(nowMs - windowMs, nowMs);
  const most = Math.max(1, ...units.map((entry) => entry.units));
  const height = (taken: number): number => 34 + (taken / most) * 46;
  return timeLine(
    "log",
    ...units.map((entry) => svg("path", { class: "tick", d: `M${x(entry.atMs)} ${floor}V${floor - height(entry.units)}` })),
  );
}
