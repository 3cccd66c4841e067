import { svg } from "./dom.js";

const dots = "M3.5 3a.5.5 0 1 0 0 1a.5.5 0 1 0 0-1";
const upright = "M1 0v7";
const level = "M0 1h7";
const slanted = "M-1 1L1-1M-1 8L8-1M6 8l2-2";

/** One pattern for each result, so that colour is never all that tells two apart. */
const patterns: Readonly<Record<string, string>> = {
  delayed: dots,
  "fallback-allowed": dots,
  "failed-open": upright,
  banned: upright,
  "failed-closed": level,
  "missing-key": upright + level,
  "ambiguous-path": dots,
  "shadow-limited": slanted,
  "fallback-limited": slanted,
};

/** The patterns of this page. They are in the document once. */
const tiles = svg("svg", { class: "hidden-text", "aria-hidden": "true" });

/** What a shape of a result is filled with: its colour and its pattern. */
export function fillOf(result: string): string {
  const colour = `var(--${result})`;
  const marks = patterns[result];
  if (marks === undefined) return colour;
  const id = `fill-${result}`;
  if (!tiles.isConnected) document.body.append(tiles);
  if (tiles.querySelector(`#${id}`) === null) {
    const size = { width: 7, height: 7 };
    const tile = svg("pattern", { id, ...size, patternUnits: "userSpaceOnUse" }, svg("rect", { ...size, fill: colour }));
    tile.append(svg("path", { d: marks, fill: "none", stroke: "var(--surface)", "stroke-width": 1.2, opacity: 0.6 }));
    tiles.append(tile);
  }
  return `url(#${id})`;
}

/** A patch in the colour and pattern of a result, for legends. */
export function swatch(result: string): SVGElement {
  const patch = svg("rect", { width: "100%", height: "100%", fill: fillOf(result), stroke: `var(--${result}-ink)` });
  return svg("svg", { class: "swatch", "aria-hidden": "true" }, patch);
}
