import { visible } from "@floodgate/pages/format";
import { foreign } from "@floodgate/pages/view/elements";
import type { ComponentChildren, VNode } from "preact";
import type { Figures } from "../model.js";

/** What the sections of the page are made of. */
export interface SectionProps {
  readonly figures: Figures;
}

/** Names that somebody else chose, with a text between them. */
export const joined = (names: readonly string[], between: string): ComponentChildren =>
  names.map((name, i) => [i > 0 && between, foreign(name)]);

/** What could not be done, and why. */
export const failure = (error: unknown): VNode => <span class="bad">{foreign((error as Error).message)}</span>;

/** How a field takes a text that is not of a language. */
export const plain = { class: "key", autocomplete: "off", autocapitalize: "off", spellcheck: false } as const;

/** A control of a form, with its label. */
export const field = (label: string, control: VNode<{ readonly id?: string }>, look = ""): VNode => (
  <div class={look}>
    <label for={control.props.id}>{label}</label>
    {control}
  </div>
);

interface NameSelectProps {
  readonly id: string;
  readonly names: readonly string[];
  /** The words for the choice of all names, which comes first. */
  readonly all?: string;
  readonly onChoose?: (name: string) => void;
}

/** A choice of one name. It stays while the name is offered. */
export const NameSelect = ({ id, names, all, onChoose }: NameSelectProps): VNode => (
  <select id={id} name="rule" onChange={({ currentTarget }) => onChoose?.(currentTarget.value)}>
    {all !== undefined && <option value="">{all}</option>}
    {[...new Set(names)].map((name) => (
      <option key={name} value={name} dir="auto">
        {visible(name, 60)}
      </option>
    ))}
  </select>
);

export const rangeWords = { minute: "last minute", hour: "last hour", day: "last day" } as const;
