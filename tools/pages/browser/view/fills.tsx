import type { ComponentChildren, VNode } from "preact";

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

/** The patterns of a page. They are in the document once. */
export const Patterns = (): VNode => (
  <svg class="hidden-text" aria-hidden="true">
    {Object.entries(patterns).map(([result, marks]) => (
      <pattern id={`fill-${result}`} width={7} height={7} patternUnits="userSpaceOnUse">
        <rect width={7} height={7} fill={`var(--${result})`} />
        <path d={marks} fill="none" stroke="var(--surface)" stroke-width={1.2} opacity={0.6} />
      </pattern>
    ))}
  </svg>
);

/** What a shape of a result is filled with: its colour and its pattern. */
export const fillOf = (result: string): string => (Object.hasOwn(patterns, result) ? `url(#fill-${result})` : `var(--${result})`);

/** A patch in the colour and pattern of a result, for legends. */
export const swatch = (result: string): VNode => (
  <svg class="swatch" aria-hidden="true">
    <rect width="100%" height="100%" fill={fillOf(result)} stroke={`var(--${result}-ink)`} />
  </svg>
);

/** What the swatches of a chart mean, by their results. */
export const legend = (marks: Readonly<Record<string, ComponentChildren>>): VNode => (
  <ul class="row legend">
    {Object.entries(marks).map(([result, words]) => (
      <li>
        {swatch(result)}
        {words}
      </li>
    ))}
  </ul>
);
