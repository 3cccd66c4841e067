import { fill, foreign, h, say } from "@floodgate/pages/dom";
import { plural } from "@floodgate/pages/format";
import type { KeyAnswer, KeyName, KeyQuery, KeyRuleState } from "../../contract.js";
import { readKey } from "../api.js";
import { keepRows, type Row } from "../rows.js";
import { actions } from "./actions.js";
import { describe } from "./rule-state.js";

const againMs = 2000;

interface Reading {
  readonly action?: () => Promise<unknown>;
  readonly tell?: (answer: KeyAnswer) => (Node | string)[];
}

/** A key under each rule that was asked for. It is read again every other second while somebody looks at it. */
export class KeyView {
  readonly element: HTMLElement;
  readonly #mayAct: () => boolean;
  readonly #said = h("p", { class: "said", role: "status" });
  #rules = h("div", { class: "answers" });
  readonly #note = h(
    "p",
    { class: "small quiet", hidden: true },
    "States in memory are those of the process that answered. Other processes count on their own.",
  );
  #query: KeyQuery | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Counts the questions: an answer to an earlier one is dropped. */
  #asked = 0;

  constructor(mayAct: () => boolean) {
    this.#mayAct = mayAct;
    this.element = h("div", { class: "key-view" }, this.#said, this.#rules, this.#note);
    document.addEventListener("visibilitychange", () => document.hidden || void this.#read());
  }

  async show(query: KeyQuery): Promise<void> {
    this.#query = query;
    // The entries of another key act on that key, so none of them is used again.
    const rules = h("div", { class: "answers" });
    this.#rules.replaceWith(rules);
    this.#rules = rules;
    this.#note.hidden = true;
    say(this.#said, "Looking…");
    await this.#read({
      tell: (answer) => ["States of ", foreign(answer.key, "key"), ` under ${plural(answer.states.length, "rule")}. They stay up to date.`],
    });
  }

  /**
   * Acts if there is something to do, then reads and draws. A person is told of a failure, and of what came of a question or an action; a
   * screen reader hears no more than that.
   */
  async #read({ action, tell }: Reading = {}): Promise<void> {
    clearTimeout(this.#timer);
    const query = this.#query;
    if (query === undefined) return;
    const asked = ++this.#asked;
    try {
      await action?.();
      const answer = await readKey(query);
      if (asked !== this.#asked) return;
      this.#draw(answer, query);
      if (tell !== undefined) fill(this.#said, ...tell(answer));
    } catch (error) {
      if (asked !== this.#asked) return;
      fill(this.#said, h("span", { class: "bad" }, foreign((error as Error).message)));
    }
    if (!document.hidden) this.#timer = setTimeout(() => void this.#read(), againMs);
  }

  #draw(answer: KeyAnswer, query: KeyQuery): void {
    this.#note.hidden = answer.states.every(({ shared }) => shared);
    const name: KeyName = "id" in query ? { id: query.id } : { key: query.key };
    keepRows(
      this.#rules,
      answer.states,
      // Two limits on different stores may have one name.
      ({ rule }, index) => `${index} ${rule}`,
      (state) => this.#ruleEntry(state, name, answer.key),
    );
  }

  #ruleEntry(first: KeyRuleState, name: KeyName, shown: string): Row<KeyRuleState> {
    const body = h("div", { class: "body stack" });
    const buttons = this.#mayAct()
      ? actions({
          name,
          rule: first.rule,
          shown,
          run: (done, action) => this.#read({ action, tell: () => [foreign(shown, "key"), " under ", foreign(first.rule), `: ${done}`] }),
        })
      : undefined;
    const row = h(
      "article",
      { class: "rule-state stack" },
      h(
        "header",
        { class: "row" },
        h("h3", {}, foreign(first.rule, "name")),
        first.mode === "shadow" ? h("span", { class: "tag" }, "shadow") : undefined,
      ),
      body,
      buttons?.element,
    );
    return {
      row,
      update(state) {
        fill(body, ...describe(state, state.atMs ?? Date.now()));
        buttons?.update(state);
      },
    };
  }
}
