import { h } from "@floodgate/pages/dom";

/** A part of the page: it makes its element once, and updates it when the model has changed. */
export interface Section {
  readonly element: Element;
  update(): void;
}

/** A card with a heading, which names it for screen readers too. */
export function card(
  id: string,
  title: string,
  options: { readonly half?: boolean } = {},
): { card: HTMLElement; head: HTMLElement; heading: HTMLElement } {
  const heading = h("h2", { id: `${id}-title`, tabindex: -1 }, title);
  const head = h("header", { class: "row" }, heading);
  return { heading, card: h("section", { id, class: options.half ? "card half" : "card", "aria-labelledby": `${id}-title` }, head), head };
}

export const rangeWords = { minute: "last minute", hour: "last hour", day: "last day" } as const;
