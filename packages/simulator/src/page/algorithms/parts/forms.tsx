// biome-ignore-all lint/a11y/noLabelWithoutControl: the control is another function's
import type { Policy } from "@floodgate/core";
import { descriptions, formatDuration, type OptionDescription, toPolicy } from "@floodgate/core/rules";
import { visible } from "@floodgate/pages/format";
import type { TargetedEvent, VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { inLargeUnits, optionsOf } from "../../../policies/options.js";
import { type ScenarioName, scenarios } from "../model/scenarios.js";
import { drawable, maxLimit, maxSeed, type Settings, wholeNumber, windowOf } from "../model/settings.js";

interface ChoicesProps {
  readonly settings: Settings;
  /** Called with what changed. Another scenario or limit removes the person's own requests; another limit, also the edits. */
  readonly onChange: (change: Partial<Settings>) => void;
}

/** Which requests are played, and the limit that all policies share. */
export function Choices({ settings, onChange }: ChoicesProps): VNode {
  const [problem, setProblem] = useState<{ readonly name: string; readonly text: string }>();
  const field = (name: string, value: string, most: number, change: (text: string) => Partial<Settings>): VNode => {
    const read = ({ currentTarget }: TargetedEvent<HTMLInputElement>): void => {
      try {
        const changed = change(currentTarget.value.trim());
        setProblem(undefined);
        onChange(changed);
      } catch (error) {
        setProblem({ name, text: visible(`${name}: ${(error as Error).message}`) });
      }
    };
    return <Field value={value} most={most} isInvalid={problem?.name === name} onChange={read} />;
  };
  const { scenario, limit, windowMs, seed, sent } = settings;
  const window = inLargeUnits(`${windowMs}ms`);
  return (
    <form class="choices" onSubmit={(event) => event.preventDefault()}>
      <fieldset class="choice">
        <legend class="hidden-text">Requests</legend>
        {(Object.keys(scenarios) as ScenarioName[]).map((name) => (
          <label>
            <input type="radio" name="scenario" checked={name === scenario} onChange={() => onChange({ scenario: name, sent: [] })} />
            <span>{scenarios[name].title}</span>
          </label>
        ))}
      </fieldset>
      <div class="row shared">
        <label>Limit {field("Limit", String(limit), 6, (text) => ({ limit: wholeNumber(text, 1, maxLimit), edited: {}, sent: [] }))}</label>
        <label>in {field("Window", window, 8, (text) => ({ windowMs: windowOf(text), edited: {}, sent: [] }))}</label>
        {scenario === "random" && (
          <label>Seed {field("Seed", String(seed), 10, (text) => ({ seed: wholeNumber(text, 0, maxSeed) }))}</label>
        )}
        {sent.length > 0 && (
          <button type="button" onClick={() => onChange({ sent: [] })}>
            Remove my requests
          </button>
        )}
      </div>
      <p class="problem" role="alert">
        {problem?.text}
      </p>
      <p class="story">{scenarios[scenario].text(limit, formatDuration(windowMs))}</p>
    </form>
  );
}

interface FieldProps {
  readonly value: string;
  readonly most: number;
  readonly isInvalid: boolean;
  readonly onChange: (event: TargetedEvent<HTMLInputElement>) => void;
}

/** A field that shows a value once it is another, and else leaves what a person is typing. */
function Field({ value, most, isInvalid, onChange }: FieldProps): VNode {
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (input.current !== null) input.current.value = value;
  }, [value]);
  return <input ref={input} size={5} maxLength={most} autocomplete="off" spellcheck={false} aria-invalid={isInvalid} onChange={onChange} />;
}

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
  const controlOf = (name: string): Control => form.current?.elements.namedItem(name) as Control;
  const read = (): void => {
    const given = Object.entries(options).map(([name, option]) => [name, readControl(controlOf(name), option)] as const);
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
      const field = controlOf(name);
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
          {control(name, option)}
        </label>
      ))}
      <p class="problem" role="alert">
        {problem}
      </p>
    </form>
  );
}

type Control = HTMLInputElement | HTMLSelectElement;

function control(name: string, { type }: OptionDescription): VNode {
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

/** What a control says; undefined if it says nothing, so that the option has its default. */
function readControl(field: Control, { type }: OptionDescription): unknown {
  if (field instanceof HTMLInputElement && field.type === "checkbox") return field.checked || undefined;
  const text = field.value.trim();
  if (text === "") return undefined;
  return type === "whole number" && /^\d+$/.test(text) ? Number(text) : text;
}
