import { createHash } from "node:crypto";
import {
  checkOptions,
  FloodgateError,
  functionOrNothing,
  type RuleSet,
  type RuleSource,
  type RulesEvent,
  type RuleUser,
  wholeNumber,
} from "@floodgate/core";
import { type FirstText, Follower, firstOf, type Listener, type RulesOrigin, type RulesText } from "./follow.js";
import { type ReadRules, readRules } from "./parse.js";
import { RulesError, type RulesProblem } from "./problems.js";

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
  const { rules } = readRules(first.text, origin.source);
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
  #refused: { readonly text: string; readonly by: Set<RuleUser> } | undefined;

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
  take(read: RulesText): void {
    const { text } = read;
    const version = versionOf(read);
    if (text === this.#text) {
      this.version = version;
      this.#refused = undefined;
      return;
    }
    if (text === this.#refused?.text) return;
    const refusers = new Set<RuleUser>();
    let rules: RuleSet;
    let ready: readonly (() => void)[];
    try {
      const parsed = readRules(text, this.#source);
      ready = this.#prepare(parsed, refusers);
      rules = parsed.rules;
    } catch (error) {
      this.#refused = { text, by: refusers };
      this.refuse(error);
      return;
    }
    this.current = rules;
    this.version = version;
    this.#text = text;
    this.#refused = undefined;
    for (const putInForce of ready) harmless(putInForce);
    this.#tell({ type: "rules-reloaded", source: this.#source, version });
  }

  /** Tells that a version cannot be taken, or that none can be read. */
  refuse(error: unknown): void {
    this.#tell({ type: "rules-refused", source: this.#source, error });
  }

  /**
   * @param refusers is where users that refuse these rules are added.
   * @throws RulesError with what users find wrong, each where it stands.
   */
  #prepare({ rules, problemAt }: ReadRules, refusers: Set<RuleUser>): (() => void)[] {
    const ready: (() => void)[] = [];
    const problems = new Map<string, RulesProblem>();
    let cause: unknown;
    for (const user of [...this.#users]) {
      try {
        ready.push(user.prepare(rules));
      } catch (error) {
        cause ??= error;
        refusers.add(user);
        for (const mistake of mistakesIn(error)) {
          const { message } = mistake instanceof Error ? mistake : new Error(String(mistake));
          const problem = problemAt(mistake instanceof FloodgateError ? mistake.at : [], message);
          // Several users may find the same, each saying its own name before it.
          const same = JSON.stringify([problem.path, message.replace(/^\w+: /, "")]);
          if (!problems.has(same)) problems.set(same, problem);
        }
      }
    }
    if (refusers.size > 0) throw new RulesError(this.#source, [...problems.values()], { cause });
    return ready;
  }

  #tell(event: RulesEvent): void {
    const listeners = [...this.#users].filter(({ tell }) => tell !== undefined);
    for (const user of listeners) harmless(() => user.tell?.(event));
    harmless(() => this.#onEvent?.(event));
    // A limit that somebody believes changed and that has not must not go unnoticed.
    if (event.type === "rules-refused" && listeners.length === 0 && this.#onEvent === undefined) warn(event.error);
  }
}

/** All mistakes that a user has found, which may be the cause of what it throws; or what it throws. */
function mistakesIn(error: unknown): readonly unknown[] {
  const { cause } = error instanceof Error ? error : {};
  const all: unknown[] = cause instanceof AggregateError ? cause.errors : [];
  return all.length > 0 && all.every((one) => one instanceof FloodgateError) ? all : [error];
}

function warn(error: unknown): void {
  const { message } = error instanceof Error ? error : new Error(String(error));
  const code = error instanceof FloodgateError ? error.code : "FLOODGATE_INVALID_RULES";
  process.emitWarning(`New rules were refused, the last ones stay in force:\n${message}`, { type: "FloodgateWarning", code });
}

/** One user's fault is no other's, and none of the rules'. */
function harmless(call: () => void): void {
  try {
    call();
  } catch {
    // There is nobody left to be told: who would tell has failed.
  }
}

function versionOf({ text, version }: RulesText): string {
  return version ?? createHash("sha256").update(text).digest("hex").slice(0, 12);
}
