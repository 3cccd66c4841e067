import { h, say } from "@floodgate/pages/dom";
import type { Counts } from "../../contract.js";
import { type Result, results } from "../results.js";

/** The results with their patterns and figures. Results that have not occurred are left out. */
export class Legend {
  readonly element: HTMLElement = h("ul", { class: "legend" });
  readonly #items: readonly { readonly id: Result; readonly always: boolean; readonly item: HTMLElement; readonly value: HTMLElement }[];

  constructor() {
    this.#items = results.map(({ id, label, means, always }) => {
      const value = h("span", { class: "value" });
      return { id, always, value, item: h("li", { title: `${label}: ${means}` }, swatch(id), label, value) };
    });
    this.element.append(...this.#items.map(({ item }) => item));
  }

  show(occurred: Counts, figures: Counts, write: (figure: number) => string): void {
    for (const { id, always, item, value } of this.#items) {
      item.hidden = !always && (occurred[id] ?? 0) === 0;
      say(value, write(figures[id] ?? 0));
    }
  }
}

export const swatch = (result: Result): HTMLElement => h("span", { class: `swatch ${result}`, "aria-hidden": "true" });
