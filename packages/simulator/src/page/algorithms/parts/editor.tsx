// biome-ignore-all lint/a11y/noLabelWithoutControl: the control is another function's
import type { Policy } from "@floodgate/core";
import { descriptions, type OptionDescription, toPolicy } from "@floodgate/core/rules";
import { visible } from "@floodgate/pages/format";
import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { optionsOf } from "../../../compare/policy-text.js";
import { drawable } from "../model/settings.js";

interface EditorProps {
  readonly title: string;
  readonly policy: Policy;
  /** Called with each valid policy. An invalid one shows an error instead. */
  readonly onChange: (policy: Policy) => void;
}

/** Fields for the numbers of a policy. They come from the algorithm's own description of its options. */
export function Editor({ title, policy, onChange }: EditorProps): VNode {
  const form = useRef<HTMLFormElement>(null);
  const [problem, setProblem] = useState("");
  const options: Readonly<Record<string, OptionDescription>> = descriptions[policy.algorithm].options;
  const fieldOf = (name: string): Field => form.current?.elements.namedItem(name) as Field;
  const read = (): void => {
    const given = Object.entries(options).map(([name, option]) => [name, readField(fieldOf(name), option)] as const);
    try {
      const known = Object.fromEntries(given.filter(([, value]) => value !== undefined));
      const changed = drawable(toPolicy(title, { algorithm: policy.algorithm, ...known }));
      setProblem("");
      onChange(changed);
    } catch (error) {
      setProblem(visible((error as Error).message));
    }
  };
  // What a person is typing stays until there is another policy.
  useLayoutEffect(() => {
    const values = optionsOf(policy);
    for (const name of Object.keys(options)) {
      const field = fieldOf(name);
      if (field instanceof HTMLInputElement && field.type === "checkbox") field.checked = values[name] === true;
      else field.value = String(values[name] ?? "");
    }
    setProblem("");
  }, [policy]);
  return (
    <form ref={form} class="fields" aria-label={`${title}: numbers`} onSubmit={(event) => event.preventDefault()} onChange={read}>
      {Object.entries(options).map(([name, option]) => (
        <label title={option.description}>
          <span>{name}</span>
          {field(name, option)}
        </label>
      ))}
      <p class="problem" role="alert">
        {problem}
      </p>
    </form>
  );
}

type Field = HTMLInputElement | HTMLSelectElement;

function field(name: string, { type }: OptionDescription): VNode {
  if (type === "flag") return <input type="checkbox" name={name} />;
  if (typeof type !== "object") {
    const mode = type === "whole number" ? "numeric" : undefined;
    return <input name={name} inputMode={mode} size={6} maxLength={20} spellcheck={false} autocomplete="off" />;
  }
  return (
    <select name={name}>
      {type.map((word) => (
        <option>{word}</option>
      ))}
    </select>
  );
}

/** What a field says; undefined if it says nothing, so that the option has its default. */
function readField(field: Field, { type }: OptionDescription): unknown {
  if (field instanceof HTMLInputElement && field.type === "checkbox") return field.checked || undefined;
  const text = field.value.trim();
  if (text === "") return undefined;
  return type === "whole number" && /^\d+$/.test(text) ? Number(text) : text;
}
