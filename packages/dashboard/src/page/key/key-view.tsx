import { plural } from "@floodgate/pages/format";
import { foreign } from "@floodgate/pages/view/elements";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { KeyAnswer, KeyName, KeyQuery } from "../../contract.js";
import { readKey } from "../api.js";
import { failure } from "../sections/section.js";
import { Actions } from "./actions.js";
import { RuleState } from "./rule-state.js";

const againMs = 2000;

interface Reading {
  readonly action?: () => Promise<unknown>;
  readonly tell?: (answer: KeyAnswer) => ComponentChildren;
}

interface KeyViewProps {
  readonly query: KeyQuery;
  readonly mayAct: boolean;
  readonly say: (words: ComponentChildren) => void;
}

/** A key under each rule that was asked for. It is read again every other second while somebody looks at it. */
export function KeyView({ query, mayAct, say }: KeyViewProps): ComponentChildren {
  const [answer, setAnswer] = useState<KeyAnswer>();
  /** Counts the questions: an answer to an earlier one is dropped. */
  const asked = useRef(0);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  /**
   * Acts if there is something to do, then reads. A person is told of a failure, and of what came of a question or an action; a screen reader
   * hears no more than that.
   */
  const read = async ({ action, tell }: Reading = {}): Promise<void> => {
    clearTimeout(timer.current);
    const own = ++asked.current;
    try {
      await action?.();
      const next = await readKey(query);
      if (own !== asked.current) return;
      setAnswer(next);
      if (tell !== undefined) say(tell(next));
    } catch (error) {
      if (own !== asked.current) return;
      say(failure(error));
    }
    if (!document.hidden) timer.current = setTimeout(read, againMs);
  };
  useEffect(() => {
    const look = (): unknown => document.hidden || read();
    document.addEventListener("visibilitychange", look);
    void read({
      tell: ({ key, states }) => ["States of ", foreign(key, "key"), ` under ${plural(states.length, "rule")}. They stay up to date.`],
    });
    return () => {
      asked.current++;
      clearTimeout(timer.current);
      document.removeEventListener("visibilitychange", look);
    };
  }, []);
  if (answer === undefined) return undefined;
  const { key: shown, states } = answer;
  const name: KeyName = "id" in query ? { id: query.id } : { key: query.key };
  const run = (rule: string, done: string, action: () => Promise<unknown>): Promise<void> =>
    read({ action, tell: () => [foreign(shown, "key"), " under ", foreign(rule), `: ${done}`] });
  return [
    <div class="answers">
      {states.map((state, i) => (
        // Two limits on different stores may have one name.
        <article key={`${i} ${state.rule}`} class="rule-state stack">
          <header class="row">
            <h3>{foreign(state.rule, "name")}</h3>
            {state.mode === "shadow" && <span class="tag">shadow</span>}
          </header>
          <RuleState state={state} />
          {mayAct && <Actions target={{ ...name, rule: state.rule }} shown={shown} state={state} run={run} />}
        </article>
      ))}
    </div>,
    !states.every(({ shared }) => shared) && (
      <p class="small quiet">States in memory are those of the process that answered. Other processes count on their own.</p>
    ),
  ];
}
