import type { KeyAnswer, KeyName, KeyQuery, KeyRuleState } from "../../contract.js";
import { readKey } from "../api.js";
import { fill, foreign, h, keepRows, say } from "../dom.js";
import { plural } from "../format.js";
import { actions } from "./actions.js";
import { describe } from "./rule-state.js";

const againMs = 2000;

/** A key under each rule that was asked for. It is read again every other second while somebody looks at it. */
export class KeyView {
  readonly element: HTMLElement;
  readonly #mayAct: () => boolean;
  readonly #said = h("p", { class: "said", role: "status" });
  readonly #rules = h("div", { class: "answers" });
  #query: KeyQuery | undefined;
  #answer: KeyAnswer | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Counts the questions: an answer to an earlier one is dropped. */
  #asked = 0;

  constructor(mayAct: () => boolean) {
    this.#mayAct = mayAct;
    this.element = h("div", { class: "key-view" }, this.#said, this.#rules);
    document.addEventListener("visibilitychange", () => document.hidden || void this.#readAgain());
  }

  async show(query: KeyQuery): Promise<void> {
    this.#query = query;
    this.#answer = undefined;
    fill(this.#rules);
    say(this.#said, "Looking…");
    await this.#read(
      () => readKey(query),
      (answer) => ["States of ", foreign(answer.key, "key"), ` under ${plural(answer.states.length, "rule")}. They stay up to date.`],
    );
  }

  async #readAgain(): Promise<void> {
    const query = this.#query;
    if (query !== undefined && this.#answer !== undefined) await this.#read(() => readKey(query));
  }

  /** Reads and draws. A person is told of a failure, and of what came of a question or an action; a screen reader hears no more than that. */
  async #read(read: () => Promise<KeyAnswer>, tell?: (answer: KeyAnswer) => (Node | string)[]): Promise<void> {
    clearTimeout(this.#timer);
    const asked = ++this.#asked;
    try {
      const answer = await read();
      if (asked !== this.#asked) return;
      this.#draw(answer);
      if (tell !== undefined) fill(this.#said, ...tell(answer));
    } catch (error) {
      if (asked !== this.#asked) return;
      fill(this.#said, h("span", { class: "bad" }, foreign((error as Error).message)));
    }
    if (!document.hidden) this.#timer = setTimeout(() => void this.#readAgain(), againMs);
  }

  /** The answer to an action has the state under one rule; the others stay. */
  #draw(answer: KeyAnswer): void {
    const query = this.#query;
    if (query === undefined) return;
    const news = new Map(answer.states.map((state) => [state.rule, state]));
    const kept = this.#answer?.states.map((state) => news.get(state.rule) ?? state) ?? answer.states;
    this.#answer = { key: answer.key, states: kept };
    const name: KeyName = "id" in query ? { id: query.id } : { key: query.key };
    keepRows(
      this.#rules,
      kept,
      ({ rule }) => rule,
      (state) => this.#ruleEntry(state, name),
    );
  }

  #ruleEntry(first: KeyRuleState, name: KeyName): { row: Element; update(state: KeyRuleState): void } {
    const body = h("div", { class: "body" });
    const buttons = this.#mayAct()
      ? actions({
          name,
          rule: first.rule,
          shown: this.#answer?.key ?? "",
          act: (done, action) => this.#read(action, (answer) => [foreign(answer.key, "key"), " under ", foreign(first.rule), `: ${done}`]),
        })
      : undefined;
    const row = h(
      "article",
      { class: "rule-state" },
      h(
        "header",
        {},
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
