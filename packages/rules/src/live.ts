import { createHash } from "node:crypto";
import { FloodgateError, type RuleSource } from "@floodgate/core";
import {
  checkOptions,
  functionOrNothing,
  isPromise,
  type RuleSet,
  type RulesEvent,
  type RuleUser,
  wholeNumber,
} from "@floodgate/core/rules";
import { type ReadAside, readAside } from "./aside.js";
import { type FirstText, Follower, firstOf, type Listener, type RulesOrigin, type RulesText } from "./follow.js";
import { readRules } from "./parse.js";
import { messageOf } from "./reason.js";
import { objectionsIn, refusalOf } from "./refusal.js";

export interface LiveOptions {
  /** The time between two looks for a new version. Default 5000; of a file 500. */
  pollMs?: number;
  /** Is told what became of each new version, as every middleware that uses the rules is. */
  onEvent?: (event: RulesEvent) => void;
}

/** Rules that follow their origin. */
export interface LiveRules extends RuleSource {
  /** The origin's name for the version in force. */
  readonly version: string;
  /** Stops following: no timer, watch or connection of the source is left. The last version stays in force. */
  close(): Promise<void>;
}

/**
 * Makes a source of rules of anything that holds a text.
 * @throws FloodgateError where there is no first version (`FLOODGATE_RULES_UNAVAILABLE`), or a RulesError where it is a bad one.
 */
export async function liveRules(origin: RulesOrigin, options: LiveOptions = {}): Promise<LiveRules> {
  if (typeof origin?.read === "function") return startLive("liveRules", origin, options);
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    'liveRules: `origin` must have a function `read`. Write liveRules({ source: "limits", read: async () => ({ text }) }).',
  );
}

/** What `liveRules` does, for the function whose name is `where`. */
export async function startLive(where: string, origin: RulesOrigin, options: LiveOptions, usualPollMs = 5000): Promise<LiveRules> {
  checkOptions(where, options, ["pollMs", "onEvent"], `${where}(..., { pollMs: ${usualPollMs} })`);
  functionOrNothing(where, "onEvent", options.onEvent, "(event) => console.log(event)");
  const pollMs = wholeNumber(where, "pollMs", options.pollMs ?? usualPollMs, 1, usualPollMs);
  const first = await firstOf(origin);
  const { rules } = await readAside(first.text, origin.source, true);
  return new Live(origin, pollMs, first, rules, options.onEvent);
}

class Live implements LiveRules, Listener {
  current: RuleSet;
  version: string;
  readonly #source: string;
  readonly #onEvent: LiveOptions["onEvent"];
  readonly #users = new Set<RuleUser>();
  readonly #follower: Follower;
  /** The text in force, and the one that has been refused since, with the users who did, if it was not bad in itself. */
  #text: string;
  #refused: { readonly text: string; readonly error: unknown; readonly by: Map<RuleUser, unknown> } | undefined;
  /** The message of the refusal that was told last, until it is over. */
  #told: string | undefined;

  constructor(origin: RulesOrigin, pollMs: number, first: FirstText, rules: RuleSet, onEvent: LiveOptions["onEvent"]) {
    this.#source = origin.source;
    this.#onEvent = onEvent;
    this.#text = first.text;
    this.current = rules;
    this.version = versionOf(first);
    this.#follower = new Follower(origin, pollMs, first, this);
  }

  close(): Promise<void> {
    return this.#follower.close();
  }

  subscribe(user: RuleUser): () => void {
    this.#users.add(user);
    return () => {
      this.#users.delete(user);
      if (this.#refused?.by.delete(user) !== true || this.#refused.by.size > 0) return;
      // Nobody is left who refused it: the next poll tries it again.
      this.#refused = undefined;
      this.#follower.forget();
    };
  }

  /** Takes a new version in force, for all users in one step or for none. */
  async take(read: RulesText): Promise<void> {
    const { text } = read;
    const version = versionOf(read);
    if (text === this.#text) {
      this.version = version;
      this.#refused = undefined;
      if (this.#told !== undefined) this.#tellReloaded();
      return;
    }
    if (text === this.#refused?.text) return this.refuse(this.#refused.error);
    const refusers = new Map<RuleUser, unknown>();
    let parsed: ReadAside;
    try {
      parsed = await readAside(text, this.#source, false);
    } catch (error) {
      if (this.#follower.isClosed) return;
      this.#refused = { text, error, by: refusers };
      this.#tellRefused(error);
      return;
    }
    if (this.#follower.isClosed) return;
    const ready = this.#prepare(parsed.rules, refusers);
    if (refusers.size > 0) return this.#refuseFor(text, refusers, parsed);
    this.current = parsed.rules;
    this.version = version;
    this.#text = text;
    this.#refused = undefined;
    for (const putInForce of ready) harmless(putInForce);
    this.#tellReloaded();
  }

  /** Tells what is wrong with what there is, unless that is what was told last. */
  refuse(error: unknown): void {
    if (messageOf(error) !== this.#told) this.#tellRefused(error);
  }

  explain(refusal: unknown): unknown {
    // What stands nowhere in the rules is wrong with the user's own options.
    if (!(refusal instanceof FloodgateError) || refusal.at.length === 0) return refusal;
    const objections = objectionsIn([refusal]);
    const { problemAt } = readRules(this.#text, this.#source);
    const places = objections.map(({ path }) => problemAt(path, ""));
    return refusalOf(this.#source, objections, places, refusal);
  }

  /** @param refusers is where users that refuse these rules are added, with what they throw. */
  #prepare(rules: RuleSet, refusers: Map<RuleUser, unknown>): (() => void)[] {
    const ready: (() => void)[] = [];
    for (const user of [...this.#users]) {
      try {
        ready.push(user.prepare(rules));
      } catch (error) {
        refusers.set(user, error);
      }
    }
    return ready;
  }

  /** Refuses a text that is good in itself, for what users find wrong with it. */
  async #refuseFor(text: string, refusers: Map<RuleUser, unknown>, { placesOf }: ReadAside): Promise<void> {
    const errors = [...refusers.values()];
    const objections = objectionsIn(errors);
    const refused = { text, error: errors[0], by: refusers };
    this.#refused = refused;
    const places = await placesOf(objections.map(({ path }) => path));
    // The user that refused it may have gone meanwhile: then the next poll tries again.
    if (this.#follower.isClosed || this.#refused !== refused) return;
    refused.error = refusalOf(this.#source, objections, places, errors[0]);
    this.#tellRefused(refused.error);
  }

  #tellRefused(error: unknown): void {
    this.#told = messageOf(error);
    this.#tell({ type: "rules-refused", source: this.#source, error });
  }

  /** Tells what is in force, where that is new or a refusal is over. */
  #tellReloaded(): void {
    this.#told = undefined;
    this.#tell({ type: "rules-reloaded", source: this.#source, version: this.version });
  }

  #tell(event: RulesEvent): void {
    const listeners = [...this.#users].filter(({ tell }) => tell !== undefined);
    for (const user of listeners) harmless(() => user.tell?.(event));
    harmless(() => this.#onEvent?.(event));
    // A limit that somebody believes changed and that has not must not go unnoticed.
    if (event.type === "rules-refused" && listeners.length === 0 && this.#onEvent === undefined) warn(event.error);
  }
}

function warn(error: unknown): void {
  const code = error instanceof FloodgateError ? error.code : "FLOODGATE_INVALID_RULES";
  process.emitWarning(`New rules were refused, the last ones stay in force:\n${messageOf(error)}`, { type: "FloodgateWarning", code });
}

/** One user's fault is no other's, and none of the rules', now or later. */
function harmless(call: () => unknown): void {
  try {
    const done = call();
    if (isPromise(done)) done.then(undefined, () => undefined);
  } catch {
    // There is nobody left to be told: who would tell has failed.
  }
}

function versionOf({ text, version }: RulesText): string {
  return version ?? createHash("sha256").update(text).digest("hex").slice(0, 12);
}
