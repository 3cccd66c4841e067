import { Card } from "@floodgate/pages/view/elements";
import type { ComponentChildren, TargetedSubmitEvent, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { KeyQuery, TopKey } from "../../contract.js";
import { KeyView } from "../key/key-view.js";
import { keyOf } from "../typed.js";
import { field, NameSelect, plain, type SectionProps } from "./section.js";

interface LookupProps extends SectionProps {
  /** The key of a top list that a person has opened. */
  readonly opened: TopKey | undefined;
}

/** Asks for a key and shows it. */
export function Lookup({ figures: { overview }, opened }: LookupProps): VNode {
  const form = useRef<HTMLFormElement>(null);
  const [said, say] = useState<ComponentChildren>();
  const [asked, setAsked] = useState<{ readonly query: KeyQuery; readonly times: number }>();
  const ask = (query: KeyQuery): void => {
    say("Looking…");
    setAsked({ query, times: (asked?.times ?? 0) + 1 });
  };
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const { key, rule } = Object.fromEntries(new FormData(event.currentTarget)) as { key: string; rule: string };
    ask({ ...keyOf(key), ...(rule !== "" && { rule }) });
  };
  useEffect(() => {
    if (opened === undefined || form.current === null) return;
    form.current.reset();
    if (overview.capabilities.keys === "shown") (form.current.elements.namedItem("key") as HTMLInputElement).value = opened.key;
    const card = form.current.closest(".card");
    card?.scrollIntoView();
    card?.querySelector("h2")?.focus();
    ask({ id: opened.id });
  }, [opened]);
  const rules = overview.rules.filter(({ kind }) => kind !== "gone").map(({ name }) => name);
  return (
    <Card id="lookup" title="Look up a key" notes={<p>what each rule knows of it now</p>}>
      <form class="ask" ref={form} onSubmit={submit}>
        {field(
          "Key",
          <input id="lookup-key" name="key" required enterkeyhint="search" aria-describedby="lookup-hint" {...plain} />,
          "grow",
        )}
        {field("Rule", <NameSelect id="lookup-rule" names={rules} all="All rules" />)}
        <button type="submit" class="primary">
          Look up
        </button>
      </form>
      <p id="lookup-hint" class="hint small quiet">
        A client address, or whatever the rule counts by: <code>203.0.113.7</code>. A key of several parts is a list:{" "}
        <code>{'["203.0.113.7", "ada"]'}</code>.
      </p>
      <p class="said" role="status">
        {said}
      </p>
      {asked && <KeyView key={asked.times} query={asked.query} mayAct={overview.capabilities.actions} say={say} />}
    </Card>
  );
}
