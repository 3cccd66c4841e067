import { foreign, h } from "@floodgate/pages/dom";
import { count, duration } from "@floodgate/pages/format";
import type { Choice, ReportClient } from "../model.js";
import { percent } from "../words.js";
import { bar, section } from "./section.js";

/** The clients with the most requests, and those that were limited most. */
export function clientsSection(choice: Choice): HTMLElement {
  const rows = h("tbody");
  const peak = h("th", { scope: "col", class: "number" });
  const column = (look: string, words: Node | string): HTMLElement => h("th", { scope: "col", class: look }, words);
  const share = column("", h("span", { class: "hidden-text" }, "Share limited"));
  const headings = [column("", "Client"), column("number", "Requests"), column("number", "Limited"), share, peak];
  const whole = section(
    "clients",
    "Heaviest clients",
    h(
      "p",
      { class: "lead quiet" },
      "Those with the most requests, and those that the rule as it is limited most. A request that only other rules rejected does not count here.",
    ),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of clients" },
      h("table", {}, h("thead", {}, h("tr", {}, ...headings, column("number", "Longest lock-out"))), rows),
    ),
  );
  choice.follow(() => {
    const { rule } = choice;
    whole.hidden = rule === undefined || rule.heaviest.length === 0;
    if (rule === undefined) return;
    peak.textContent = `Most in ${duration(rule.windowMs)}`;
    const most = Math.max(1, ...rule.heaviest.map(({ requests }) => requests));
    rows.replaceChildren(...rule.heaviest.map((client) => row(client, most)));
  });
  return whole;
}

function row({ name, requests, limited, peak, longestLockoutMs }: ReportClient, most: number): HTMLElement {
  const number = (text: string): HTMLElement => h("td", { class: "number" }, text);
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, foreign(name, "key")),
    number(count(requests)),
    number(limited === 0 ? "none" : `${count(limited)} (${percent(limited, requests)})`),
    h("td", { class: "bar" }, bar({ allowed: requests / most, limited: limited / most })),
    number(count(peak)),
    number(limited === 0 ? "none" : duration(longestLockoutMs)),
  );
}
