import { fill, foreign, h, visible } from "@floodgate/pages/dom";
import type { Figures } from "../model.js";

/** A part of the page: it makes its element once, and updates it when the figures have changed. */
export interface Section {
  readonly element: Element;
  update(figures: Figures): void;
}

/** A card with a heading, which names it for screen readers too. */
export function card(look: "card" | "card half", id: string, title: string, ...notes: readonly Node[]): HTMLElement {
  const heading = h("h2", { id: `${id}-title`, tabindex: -1 }, title);
  return h("section", { id, class: look, "aria-labelledby": `${id}-title` }, h("header", { class: "row" }, heading, ...notes));
}

/** Names that somebody else chose, with a text between them. */
export const joined = (names: readonly string[], between: string): (Node | string)[] =>
  names.flatMap((name, i) => [i === 0 ? "" : between, foreign(name)]);

export interface NameSelect {
  readonly element: HTMLSelectElement;
  /** Undefined: all, or nothing is offered. */
  chosen(): string | undefined;
  /** Offers these names. The choice stays if it is among them. */
  offer(names: readonly string[]): void;
}

/** A choice of one name. @param all the words for the choice of all of them, which comes first. */
export function nameSelect(id: string, all?: string): NameSelect {
  const element = h("select", { id });
  let offered: string | undefined;
  return {
    element,
    chosen: () => element.value || undefined,
    offer(names) {
      if (names.join("\n") === offered) return;
      offered = names.join("\n");
      const option = (name: string) => h("option", { value: name, selected: name === element.value, dir: "auto" }, visible(name, 60));
      fill(element, all && h("option", { value: "" }, all), ...[...new Set(names)].map(option));
    },
  };
}

export const rangeWords = { minute: "last minute", hour: "last hour", day: "last day" } as const;
