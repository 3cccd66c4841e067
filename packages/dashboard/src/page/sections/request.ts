import { fill, foreign, h, say } from "@floodgate/pages/dom";
import { count } from "@floodgate/pages/format";
import type { RequestQuery, RequestReason } from "../../contract.js";
import { askRequest } from "../api.js";
import { card, foldingRow, foldingTable, type Section } from "./section.js";

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/** Asks what each rule would say of a request. Nothing is charged. */
export function request(): Section {
  const note = h("p", {}, "what each rule would say of it now; nothing is charged");
  const element = card("card", "request", "Ask about a request", note);
  const method = h("select", { id: "request-method" }, ...methods.map((name) => h("option", {}, name)));
  const plain = { autocomplete: "off", autocapitalize: "off", spellcheck: "false" };
  const path = h("input", { id: "request-path", class: "key", required: true, pattern: "/\\S*", placeholder: "/posts", ...plain });
  const ip = h("input", { id: "request-ip", class: "key", placeholder: "203.0.113.7", ...plain });
  const plan = h("input", { id: "request-plan", class: "key", ...plain });
  const headers = h("textarea", { id: "request-headers", class: "key", rows: 2, placeholder: "x-api-key: abc", spellcheck: "false" });
  const keys = h("textarea", { id: "request-keys", class: "key", rows: 2, placeholder: "user=42", spellcheck: "false" });
  const said = h("p", { class: "said", role: "status" });
  const reasons = h("div", { class: "scroll" });
  const field = (label: string, control: HTMLElement, css = ""): HTMLElement =>
    h("div", { class: css }, h("label", { for: control.id }, label), control);
  const form = h(
    "form",
    { class: "ask" },
    field("Method", method),
    field("Path", path, "grow"),
    field("Client address", ip),
    h("button", { type: "submit", class: "primary" }, "Ask"),
    h(
      "details",
      { class: "more" },
      h("summary", {}, "Headers, keys and plan"),
      h(
        "div",
        { class: "ask" },
        field("Headers, one a line", headers, "grow"),
        field("Keys of the app, one a line", keys, "grow"),
        field("Plan", plan),
      ),
    ),
  );
  let asked = 0;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const own = ++asked;
    say(said, "Asking…");
    fill(reasons);
    try {
      const { verdict, rules } = await askRequest(
        queryOf({ method: method.value, path: path.value, ip: ip.value, plan: plan.value, headers: headers.value, keys: keys.value }),
      );
      if (own !== asked) return;
      fill(said, h("strong", {}, foreign(`${method.value} ${path.value.trim()}`)), " ", foreign(verdict), ".");
      if (rules.length > 0) fill(reasons, foldingTable("What each rule says", columns, h("tbody", {}, ...rules.map(row))));
    } catch (error) {
      if (own === asked) fill(said, h("span", { class: "bad" }, foreign((error as Error).message)));
    }
  });
  element.append(form, said, reasons);
  return { element, update: () => undefined };
}

const columns = [
  { name: "Rule" },
  { name: "Says" },
  { name: "Key" },
  { name: "Policy", look: "quiet" },
  { name: "Used", look: "number" },
  { name: "Cost", look: "number" },
];

function row({ rule, mode, counts, words, key, policy, used, limit, cost }: RequestReason): Element {
  return foldingRow(
    columns,
    [foreign(rule, "name"), " ", mode === "shadow" ? h("span", { class: "tag" }, "shadow") : undefined],
    foreign(words, counts ? "" : "quiet"),
    key === undefined ? undefined : foreign(key, "key"),
    policy,
    used === undefined || limit === undefined ? undefined : `${count(used)} of ${count(limit)}`,
    cost === undefined ? undefined : count(cost),
  );
}

/** What a person typed. */
export function queryOf(typed: Readonly<Record<"method" | "path" | "ip" | "plan" | "headers" | "keys", string>>): RequestQuery {
  const { method, path, ip, plan, headers, keys } = typed;
  return {
    method,
    path: path.trim(),
    ...(ip.trim() !== "" && { ip: ip.trim() }),
    ...(plan.trim() !== "" && { plan: plan.trim() }),
    headers: pairsOf(headers, ":"),
    keys: pairsOf(keys, "="),
  };
}

/** The lines with a separator, by what is before it. */
function pairsOf(text: string, separator: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.indexOf(separator) > 0);
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(separator);
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
}
