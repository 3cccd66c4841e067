import { foreign, h, say } from "@floodgate/pages/dom";
import { count, moment } from "@floodgate/pages/format";
import type { Top, TopKey } from "../../contract.js";
import { keepRows, type Row } from "../rows.js";
import { card, type Section } from "./section.js";

interface ListWords {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  readonly empty: string;
  readonly list: keyof Top;
}

export const byRequests: ListWords = {
  id: "keys",
  title: "Top keys by requests",
  unit: "Requests",
  empty: "No key has sent a request yet.",
  list: "byRequests",
};

export const byRejections: ListWords = {
  id: "rejections",
  title: "Top keys by rejections",
  unit: "Rejections",
  empty: "No request has been rejected yet.",
  list: "byRejections",
};

/** The heaviest keys. A count is an estimate: the hatched end of its bar is where the true count may lie. */
export function topKeys(words: ListWords, lookUp: (key: TopKey) => void): Section {
  const since = h("p");
  const element = card("card half", words.id, words.title, since);
  const body = h("tbody");
  const table = h(
    "table",
    { class: "top" },
    h("caption", { class: "hidden-text" }, words.title),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Key"), h("th", { scope: "col" }, words.unit))),
    body,
  );
  const empty = h("p", { class: "empty quiet" }, words.empty);
  const note = h("p", { class: "small quiet" });
  element.append(h("div", { class: "scroll" }, table), empty, note);
  return {
    element,
    update({ overview, nowMs }) {
      const { sinceMs, keys } = overview.top[words.list];
      say(since, `since ${moment(sinceMs, nowMs)}`);
      empty.hidden = keys.length > 0;
      table.hidden = note.hidden = keys.length === 0;
      element.classList.toggle("none", keys.length === 0);
      say(note, keys.some(({ error }) => error > 0) ? "A count may be too high by the hatched end of its bar." : "");
      const most = keys[0]?.count ?? 1;
      const shadows = new Set(overview.rules.flatMap(({ name, mode }) => (mode === "shadow" ? [name] : [])));
      const clients = new Map<string, RankedKey[]>();
      for (const key of keys) {
        const ranked = { ...key, most, shadow: shadows.has(key.rule) };
        clients.set(key.id, [...(clients.get(key.id) ?? []), ranked]);
      }
      keepRows(
        body,
        [...clients.values()],
        ([first]) => first?.id ?? "",
        ([first]) => clientRow(first as RankedKey, lookUp),
      );
    },
  };
}

interface RankedKey extends TopKey {
  /** The count of the heaviest key of the list. */
  readonly most: number;
  /** Whether its rule rejects nobody. */
  readonly shadow: boolean;
}

/** A client, with a line for each rule that counted it. */
function clientRow(client: TopKey, lookUp: (key: TopKey) => void): Row<readonly RankedKey[]> {
  const button = h("button", { type: "button", class: "link key", title: "Look up this key" }, foreign(client.key));
  button.addEventListener("click", () => lookUp(client));
  const lines = h("ul", { class: "stack" });
  return {
    row: h("tr", {}, h("th", { scope: "row" }, button), h("td", {}, lines)),
    update: (rules) => keepRows(lines, rules, ({ rule }) => rule, ruleLine),
  };
}

function ruleLine({ rule }: RankedKey): Row<RankedKey> {
  const figure = h("span", { class: "number" });
  const shadow = h("span");
  const mark = h("span", { class: "tag hot" });
  const sure = h("span", { class: "sure" });
  const unsure = h("span", { class: "unsure" });
  const row = h(
    "li",
    {},
    h("span", { class: "row who" }, h("span", { class: "quiet" }, foreign(rule), shadow), mark, figure),
    h("span", { class: "share", "aria-hidden": "true" }, sure, unsure),
  );
  return {
    row,
    update(now) {
      say(figure, now.error === 0 ? count(now.count) : `${count(now.count - now.error)} to ${count(now.count)}`);
      say(shadow, now.shadow ? " (shadow)" : "");
      mark.hidden = now.blocked === undefined;
      say(mark, now.blocked === undefined ? "" : now.blocked.kind === "ban" ? "banned" : "blocked");
      sure.style.width = `${(100 * (now.count - now.error)) / now.most}%`;
      unsure.style.width = `${(100 * now.error) / now.most}%`;
    },
  };
}
