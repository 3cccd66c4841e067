import type { History } from "../../contract.js";
import { svg } from "../dom.js";
import { seriesOf } from "../history.js";

const width = 120;
const height = 28;
const steps = 60;

/** A rule's requests over the range in little: all of them, and before them those that were rejected. */
export function sparkLine(history: History, rule: string): SVGElement {
  const limited = merged(history, ["limited", "missing-key"], rule);
  const all = merged(history, ["allowed", "exempt", "delayed", "degraded", "shadow-limited", "limited", "missing-key"], rule);
  const most = Math.max(1, ...all);
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, class: "spark", "aria-hidden": "true", preserveAspectRatio: "none" },
    svg("path", { class: "all", d: area(all, most) }),
    svg("path", { class: "rejected", d: area(limited, most) }),
  );
}

/** The series of several results added up, in as many steps as there is room for. */
function merged(history: History, results: readonly Parameters<typeof seriesOf>[1][], rule: string): number[] {
  const sums = new Array<number>(steps).fill(0);
  for (const result of results) {
    seriesOf(history, result, rule).forEach((figure, i) => {
      const step = Math.floor((i * steps) / history.points);
      sums[step] = (sums[step] ?? 0) + figure;
    });
  }
  return sums;
}

function area(figures: readonly number[], most: number): string {
  const step = width / figures.length;
  const tops = figures.map((figure) => `V${(height - (figure / most) * (height - 2)).toFixed(1)}h${step}`);
  return `M0 ${height}${tops.join("")}V${height}Z`;
}
