import { swatch } from "@floodgate/pages/view/fills";
import type { ComponentChildren, VNode } from "preact";

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

/** A bar of parts that lie over each other, each as wide as its share. */
export const bar = (parts: Readonly<Record<string, number>>): VNode => (
  <svg class="parts" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
    {Object.entries(parts).map(([name, share]) => (
      <rect class={name} width={100 * share} height={1} />
    ))}
  </svg>
);
