import { fill, h, visible } from "@floodgate/pages/dom";

/** A part of the page: it makes its element once, and updates it when the model has changed. */
export interface Section {
  readonly element: Element;
  update(): void;
}

/** A card with a heading, which names it for screen readers too. */
export function card(look: "card" | "card half", id: string, title: string, ...notes: readonly Node[]): HTMLElement {
  const heading = h("h2", { id: `${id}-title`, tabindex: -1 }, title);
  return h("section", { id, class: look, "aria-labelledby": `${id}-title` }, h("header", { class: "row" }, heading, ...notes));
}

/** A choice of one rule, or of all. */
export class RuleSelect {
  readonly element: HTMLSelectElement;
  #names: readonly string[] = [];

  constructor(id: string) {
    this.element = h("select", { id });
  }

  /** Undefined: all. */
  get chosen(): string | undefined {
    return this.#names[this.element.selectedIndex - 1];
  }

  choose(rule: string | undefined): void {
    const index = rule === undefined ? 0 : this.#names.indexOf(rule) + 1;
    if (this.element.selectedIndex !== index) this.element.selectedIndex = index;
  }

  /** Offers these rules. The choice stays if it is among them. */
  offer(rules: readonly string[]): void {
    const names = [...new Set(rules)];
    if (this.element.options.length > 0 && names.join("\n") === this.#names.join("\n")) return;
    const { chosen } = this;
    this.#names = names;
    fill(this.element, h("option", {}, "All rules"), ...names.map((name) => h("option", { dir: "auto" }, visible(name, 60))));
    this.choose(chosen);
  }
}

export const rangeWords = { minute: "last minute", hour: "last hour", day: "last day" } as const;
