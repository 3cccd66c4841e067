import { foreign, h, visible } from "@floodgate/pages/dom";
import { count, plural } from "@floodgate/pages/format";
import type { ReportData } from "../model.js";
import { momentOf, percent } from "../words.js";
import { section } from "./section.js";

/** What one should know to judge the numbers. */
export function notesSection({ notes }: ReportData): HTMLElement | undefined {
  if (notes.length === 0) return undefined;
  return section(
    "notes",
    "Before you rely on these numbers",
    h("ul", { class: "notes" }, ...notes.map((note) => h("li", {}, foreign(note)))),
  );
}

export function about({ logs, formats, lines, requests, skipped, madeAtMs, command }: ReportData): HTMLElement {
  const more = logs.length > 5 ? ` and ${count(logs.length - 5)} more` : "";
  const facts: [string, Node | string][] = [
    ["Logs", foreign(logs.slice(0, 5).join(", ") + more)],
    ["Format", foreign(formats.join(", "))],
    ["Lines", `${plural(lines, "line")}, ${plural(requests, "request")}, ${count(skipped)} skipped (${percent(skipped, lines)})`],
    ["Made", `${momentOf(madeAtMs)} UTC`],
    ["Command", h("code", { class: "foreign" }, visible(command, 2000))],
  ];
  return h("footer", {}, h("dl", {}, ...facts.flatMap(([name, fact]) => [h("dt", {}, name), h("dd", {}, fact)])));
}
