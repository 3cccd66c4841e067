import { type Child, fill, foreign, h, visible } from "@floodgate/pages/dom";
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

interface Column {
  readonly name: string;
  readonly look?: string;
}

/** A table whose rows are small grids on a phone. The roles are said because such rows are no table to CSS. */
export function foldingTable(caption: string, columns: readonly Column[], body: HTMLElement): HTMLTableElement {
  body.setAttribute("role", "rowgroup");
  const headings = columns.map(({ name, look }) => h("th", { scope: "col", role: "columnheader", class: look }, name));
  const head = h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ...headings));
  return h("table", { class: "folding", role: "table" }, h("caption", { class: "hidden-text" }, caption), head, body);
}

/** A row of such a table: what it is about, then its other cells. */
export function foldingRow(columns: readonly Column[], about: readonly Child[], ...cells: readonly Child[]): Element {
  return h(
    "tr",
    { role: "row" },
    h("th", { scope: "row", role: "rowheader" }, ...about),
    ...columns.slice(1).map(({ name, look }, i) => h("td", { role: "cell", class: look, "data-name": name }, cells[i])),
  );
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
