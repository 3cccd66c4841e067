import { svg } from "@floodgate/pages/dom";
import type { History } from "../../contract.js";
import { seriesOf } from "../history.js";
import { type Result, results } from "../results.js";

const width = 120;
const height = 28;
const steps = 60;

/** A rule's requests over the range in little. At the floor are those that were rejected, above them those that a shadow rule would reject. */
export function sparkLine(history: History, rule: string): SVGElement {
  const rejected = merged(history, ["limited", "missing-key"], rule);
  const shadow = merged(history, ["limited", "missing-key", "shadow-limited"], rule);
  const all = merged(
    history,
    results.map(({ id }) => id),
    rule,
  );
  const most = Math.max(1, ...all);
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, class: "spark", "aria-hidden": "true", preserveAspectRatio: "none" },
    svg("path", { class: "allowed", d: area(all, most) }),
    svg("path", { class: "shadow-limited", d: area(shadow, most) }),
    svg("path", { class: "limited", d: area(rejected, most) }),
  );
}

/** The series of several results added up, in as many steps as there is room for. */
function merged(history: History, which: readonly Result[], rule: string): number[] {
  const sums = new Array<number>(steps).fill(0);
  for (const result of which) {
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
