import { h } from "@floodgate/pages/dom";

export function section(id: string, heading: string, ...children: readonly (Node | undefined)[]): HTMLElement {
  return h("section", { class: "card", id, "aria-labelledby": `${id}-heading` }, h("h2", { id: `${id}-heading` }, heading), ...children);
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
