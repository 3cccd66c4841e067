import type { Policy } from "@floodgate/core";
import { descriptions, type OptionDescription, toPolicy } from "@floodgate/core/rules";
import { h, say, visible } from "@floodgate/pages/dom";
import { optionsOf } from "../../../compare/policy-text.js";
import { drawable } from "../model/settings.js";

/** Fields for the numbers of a policy. They come from the algorithm's own description of its options. */
export interface Editor {
  readonly element: HTMLElement;
  /** Shows another policy of the same algorithm. */
  show(policy: Policy): void;
}

/** @param onChange is called with each valid policy. An invalid one shows an error instead. */
export function makeEditor(title: string, first: Policy, onChange: (policy: Policy) => void): Editor {
  const options: Readonly<Record<string, OptionDescription>> = descriptions[first.algorithm].options;
  const fields = new Map(Object.entries(options).map(([name, option]) => [name, makeField(option)]));
  const error = h("p", { class: "problem", role: "alert" });
  const form = h(
    "form",
    { class: "fields", "aria-label": `${title}: numbers` },
    ...[...fields].map(([name, field]) => h("label", { title: options[name]?.description }, h("span", {}, name), field)),
    error,
  );
  let policy = first;
  const read = (): void => {
    const given = [...fields].map(([name, field]) => [name, readField(field, options[name])] as const);
    try {
      const made = toPolicy(title, {
        algorithm: policy.algorithm,
        ...Object.fromEntries(given.filter(([, value]) => value !== undefined)),
      });
      policy = drawable(made);
      say(error, "");
    } catch (thrown) {
      say(error, visible((thrown as Error).message));
      return;
    }
    onChange(policy);
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", read);
  const show = (shown: Policy): void => {
    policy = shown;
    const texts = optionsOf(shown);
    for (const [name, field] of fields) {
      if (field instanceof HTMLInputElement && field.type === "checkbox") field.checked = texts[name] === true;
      else field.value = String(texts[name] ?? "");
    }
    say(error, "");
  };
  show(first);
  return { element: form, show };
}

type Field = HTMLInputElement | HTMLSelectElement;

function makeField(option: OptionDescription): Field {
  if (option.type === "flag") return h("input", { type: "checkbox" });
  if (typeof option.type === "object") return h("select", {}, ...option.type.map((word) => h("option", { value: word }, word)));
  const isNumber = option.type === "whole number";
  return h("input", {
    type: "text",
    inputmode: isNumber ? "numeric" : undefined,
    size: 6,
    maxlength: 20,
    spellcheck: "false",
    autocomplete: "off",
  });
}

/** What a field says; undefined if it says nothing, so that the option has its default. */
function readField(field: Field, option: OptionDescription | undefined): unknown {
  if (field instanceof HTMLInputElement && field.type === "checkbox") return field.checked || undefined;
  const text = field.value.trim();
  if (text === "") return undefined;
  return option?.type === "whole number" && /^\d+$/.test(text) ? Number(text) : text;
}
