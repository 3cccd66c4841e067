import { h } from "@floodgate/pages/dom";
import type { Capabilities, KeyName, TopKey } from "../../contract.js";
import { KeyView } from "../key/key-view.js";
import { card, nameSelect, type Section } from "./section.js";

/** Asks for a key and shows it. A key of the top lists opens here too. */
export function lookup(): Section & { open(key: TopKey): void } {
  const element = card("card", "lookup", "Look up a key", h("p", {}, "what each rule knows of it now"));
  let may: Capabilities | undefined;
  const view = new KeyView(() => may?.actions ?? false);
  const input = h("input", {
    id: "lookup-key",
    class: "key",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    enterkeyhint: "search",
    required: true,
    "aria-describedby": "lookup-hint",
  });
  const rules = nameSelect("lookup-rule", "All rules");
  const form = h(
    "form",
    { class: "ask" },
    h("div", { class: "grow" }, h("label", { for: "lookup-key" }, "Key"), input),
    h("div", {}, h("label", { for: "lookup-rule" }, "Rule"), rules.element),
    h("button", { type: "submit", class: "primary" }, "Look up"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const rule = rules.chosen();
    void view.show({ ...keyOf(input.value), ...(rule !== undefined && { rule }) });
  });
  const hint = h(
    "p",
    { id: "lookup-hint", class: "hint small quiet" },
    "A client address, or whatever the rule counts by: ",
    h("code", {}, "203.0.113.7"),
    ". A key of several parts is a list: ",
    h("code", {}, '["203.0.113.7", "ada"]'),
    ".",
  );
  element.append(form, hint, view.element);

  return {
    element,
    open(key) {
      input.value = may?.keys === "shown" ? key.key : "";
      rules.element.value = "";
      element.scrollIntoView();
      element.querySelector("h2")?.focus();
      void view.show({ id: key.id });
    },
    update({ overview }) {
      may = overview.capabilities;
      rules.offer(overview.rules.filter(({ kind }) => kind !== "gone").map(({ name }) => name));
    },
  };
}

/** What a person typed: a key as it is, or a list of its parts as JSON. */
export function keyOf(typed: string): KeyName {
  const text = typed.trim();
  if (!text.startsWith("[")) return { key: text };
  try {
    const parts: unknown = JSON.parse(text);
    if (Array.isArray(parts) && parts.length > 0 && parts.every((part) => typeof part === "string" || typeof part === "number")) {
      return { key: parts.map(String) };
    }
  } catch {
    // Not a list, so a key that begins with a bracket.
  }
  return { key: text };
}
