import { fill, h } from "./dom.js";

interface Figures {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The figures of a chart as a table, for people who do not see the chart, or want to copy them. It is written only while it is open. */
export class FiguresTable {
  readonly element: HTMLDetailsElement;
  readonly summary: HTMLElement;
  readonly #head: HTMLElement = h("tr");
  readonly #body: HTMLElement = h("tbody");
  #write: (() => Figures) | undefined;

  constructor(caption: string, summary = "Show as a table") {
    this.summary = h("summary", {}, summary);
    this.element = h(
      "details",
      {},
      this.summary,
      h(
        "div",
        { class: "scroll", tabindex: 0, role: "group", "aria-label": caption },
        h("table", {}, h("caption", { class: "hidden-text" }, caption), h("thead", {}, this.#head), this.#body),
      ),
    );
    this.element.addEventListener("toggle", () => this.#draw());
  }

  show(write: () => Figures): void {
    this.#write = write;
    this.#draw();
  }

  #draw(): void {
    if (!this.element.open || this.#write === undefined) return;
    const { columns, rows } = this.#write();
    fill(this.#head, ...columns.map((column, i) => h("th", { scope: "col", class: i > 0 && "number" }, column)));
    fill(
      this.#body,
      ...rows.map(([first = "", ...rest]) =>
        h("tr", {}, h("th", { scope: "row" }, first), ...rest.map((cell) => h("td", { class: "number" }, cell))),
      ),
    );
  }
}
