import { fill, foreign, h, say, svg } from "@floodgate/pages/dom";
import type { Range } from "../../contract.js";
import type { Connection } from "../live.js";
import type { Model } from "../model.js";
import { rangeWords } from "./section.js";

const connectionWords: Record<Connection, { readonly text: string; readonly look: string }> = {
  connecting: { text: "Connecting…", look: "" },
  live: { text: "Live", look: "good" },
  lost: { text: "Not connected, trying again", look: "bad" },
  paused: { text: "Paused", look: "" },
};

/** The name of the app, the ways to the parts of the page, the range of its figures, and whether they are live. */
export function topBar(model: Model): { readonly element: Element; update(): void } {
  const title = h("span");
  const connection = h("span", { class: "state", role: "status" });
  const choices = (Object.keys(rangeWords) as Range[]).map((range) => {
    const input = h("input", { type: "radio", name: "range", value: range, checked: range === model.range });
    input.addEventListener("change", () => model.choose(range));
    return h("label", {}, input, h("span", {}, range[0]?.toUpperCase() + range.slice(1)));
  });
  const element = h(
    "header",
    { class: "bar row" },
    h("div", { class: "brand" }, mark(), title),
    h(
      "nav",
      { "aria-label": "Parts of this page" },
      h(
        "ul",
        { class: "row" },
        ...[
          ["lookup", "Look up a key"],
          ["traffic", "Traffic"],
          ["rules", "Rules"],
          ["keys", "Keys"],
          ["stores", "Store"],
        ].map(([id, text]) => h("li", {}, h("a", { href: `#${id}` }, text))),
      ),
    ),
    h(
      "div",
      { class: "end row" },
      connection,
      h("fieldset", { class: "choice" }, h("legend", { class: "hidden-text" }, "Show the last"), ...choices),
    ),
  );
  return {
    element,
    update() {
      const name = model.figures?.overview.title ?? "Floodgate";
      if (title.textContent !== name) {
        fill(title, foreign(name));
        document.title = name;
      }
      const { text, look } = connectionWords[model.connection];
      connection.className = `state ${look}`;
      say(connection, text);
    },
  };
}

/** A gate that lets some of the water through. */
const mark = (): Element =>
  svg(
    "svg",
    { viewBox: "0 0 24 24", "aria-hidden": "true" },
    svg("path", { d: "M5 3v18M19 3v18M5 8h14M9 8v5M12 8v5M15 8v5" }),
    svg("path", { d: "M2 19c2 0 2-1.5 4-1.5s2 1.5 4 1.5 2-1.5 4-1.5 2 1.5 4 1.5 2-1.5 4-1.5" }),
  );
