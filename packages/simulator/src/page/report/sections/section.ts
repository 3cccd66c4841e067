import { h, svg } from "@floodgate/pages/dom";
import { swatch } from "@floodgate/pages/fills";

export function section(id: string, heading: string, ...children: readonly (Node | undefined)[]): HTMLElement {
  return h("section", { class: "card", id, "aria-labelledby": `${id}-heading` }, h("h2", { id: `${id}-heading` }, heading), ...children);
}

/** What the swatches of a chart mean. */
export function legend(...marks: readonly (readonly [result: string, words: Node | string])[]): HTMLElement {
  return h("ul", { class: "row legend" }, ...marks.map(([result, words]) => h("li", {}, swatch(result), words)));
}

export function figure(label: string, value: string, more = ""): HTMLElement {
  const text = more === "" ? undefined : h("span", { class: "quiet" }, more);
  return h(
    "div",
    { class: "figure" },
    h("dt", { class: "small quiet" }, label),
    h("dd", { class: "row" }, h("span", { class: "value" }, value), text),
  );
}

/** A bar of parts that lie over each other, each as wide as its share. */
export function bar(parts: Readonly<Record<string, number>>): SVGSVGElement {
  const rects = Object.entries(parts).map(([name, share]) => svg("rect", { class: name, width: 100 * share, height: 1 }));
  return svg("svg", { class: "parts", viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" }, ...rects);
}
