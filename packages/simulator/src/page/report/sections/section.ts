import { h } from "@floodgate/pages/dom";
import { swatch } from "@floodgate/pages/theme";

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
