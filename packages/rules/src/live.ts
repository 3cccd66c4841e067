import { createHash } from "node:crypto";
import { FloodgateError, type RuleSource } from "@floodgate/core";
import {
  checkOptions,
  functionOrNothing,
  type GrantChange,
  isPromise,
  type Refusal,
  type RuleSet,
  type RulesEvent,
  type RuleUser,
  tellAll,
  wholeNumber,
  wrongOption,
} from "@floodgate/core/rules";
import { type FirstText, type OriginListener, OriginWatcher, type RulesOrigin, type RulesText, readFirst } from "./origin.js";
import { readRules } from "./parse.js";
import { parseAsync } from "./parse-async.js";
import { messageOf, mistakesError, mistakesIn } from "./rules-error.js";

export interface LiveOptions {
  /** Milliseconds between two checks for a new version. Default 5000; for a file 500. */
  pollMs?: number;
  /** Called with `rules-reloaded` or `rules-refused` for each new version. Middlewares that use the rules get these events too. */
  onEvent?: (event: RulesEvent) => void;
}

/** Rules that follow their origin. */
export interface LiveRules extends RuleSource {
  /** The origin's name for the active version. */
  readonly version: string;
  /** Stops following: closes the timer, the watch and the connection. The active version stays active. */
  close(): Promise<void>;
}

/**
 * Loads rules from your own origin and follows its changes.
 * @throws FloodgateError `FLOODGATE_RULES_UNAVAILABLE` if the first version cannot be read; RulesError if it is invalid.
 * @example
 * const rules = await liveRules({ source: "limits", read: async () => ({ text: await download() }) });
 */
export async function liveRules(origin: RulesOrigin, options: LiveOptions = {}): Promise<LiveRules> {
  if (typeof origin?.read === "function" && typeof origin.source === "string") return startLive("liveRules", origin, options);
  const example = 'liveRules({ source: "limits", read: async () => ({ text }) })';
  throw wrongOption("liveRules", "origin", "an object with a text `source` and a function `read`", origin, example);
}

/** Implements `liveRules` and the functions for files and Redis. `where` is the function's name, for error messages. */
export async function startLive(where: string, origin: RulesOrigin, options: LiveOptions, defaultPollMs = 5000): Promise<Live> {
  checkOptions(where, options, ["pollMs", "onEvent"], `${where}(..., { pollMs: ${defaultPollMs} })`);
  functionOrNothing(where, "onEvent", options.onEvent, "(event) => console.log(event)");
  const pollMs = wholeNumber(where, "pollMs", options.pollMs ?? defaultPollMs, 1, defaultPollMs);
  const first = await readFirst(origin);
  const { rules } = await parseAsync(first.text, origin.source, true);
  return new Live(origin, pollMs, first, rules, options.onEvent);
}

/** Live rules, for functions that write them too. */
export class Live implements LiveRules, OriginListener {
  current: RuleSet;
  version: string;
  loadedAtMs: number = Date.now();
  readonly name: string;
  readonly #onEvent: LiveOptions["onEvent"];
  readonly #users = new Set<RuleUser>();
  readonly #watcher: OriginWatcher;
  /** The active text. */
  #text: string;
  /** The last text if it was refused. `by` holds the users that refused it; it is empty if the text itself is invalid. */
  #refusedText: { readonly text: string; readonly error: unknown; readonly by: Map<RuleUser, unknown> } | undefined;
  /** Whether that was only for names that others held, and may have given up since. */
  #mayPass = false;
  /** The message of the last reported refusal; undefined once the refusal is over. */
  #reportedMessage: string | undefined;
  refused: Refusal | undefined = undefined;

  constructor(origin: RulesOrigin, pollMs: number, first: FirstText, rules: RuleSet, onEvent: LiveOptions["onEvent"]) {
    this.name = origin.source;
    this.#onEvent = onEvent;
    this.#text = first.text;
    this.current = rules;
    this.version = versionOf(first);
    this.#watcher = new OriginWatcher(origin, pollMs, first, this);
  }

  close(): Promise<void> {
    return this.#watcher.close();
  }

  subscribe(user: RuleUser): () => void {
    this.#users.add(user);
    return () => {
      this.#users.delete(user);
      if (this.#refusedText?.by.delete(user) !== true || this.#refusedText.by.size > 0) return;
      // All users that refused it have left: the next poll tries it again.
      this.#refusedText = undefined;
      this.#watcher.forgetRevision();
    };
  }

  /** Reads the newest version now. */
  refresh(): Promise<void> {
    return this.#watcher.read();
  }

  reportGrant({ rule: name, key, grant, by }: GrantChange): void {
    this.#report({ type: "granted", name, key, plan: grant?.plan, until: grant?.until, by });
  }

  /** Notes a good check, unless the newest text is refused. */
  unchanged(): void {
    if (this.#refusedText === undefined) this.loadedAtMs = Date.now();
    else if (this.#mayPass) this.#watcher.forgetRevision();
  }

  /** Activates a new version for all users at once, or for none. */
  async receive(read: RulesText): Promise<void> {
    const { text } = read;
    const version = versionOf(read);
    if (text === this.#text) {
      this.loadedAtMs = Date.now();
      this.version = version;
      this.#refusedText = undefined;
      if (this.#reportedMessage !== undefined) this.#reportReloaded();
      return;
    }
    if (text === this.#refusedText?.text && !this.#mayPass) return this.refuse(this.#refusedText.error);
    this.#mayPass = false;
    const refusers = new Map<RuleUser, unknown>();
    let rules: RuleSet;
    try {
      ({ rules } = await parseAsync(text, this.name, false));
    } catch (error) {
      if (this.#watcher.isClosed) return;
      this.#refusedText = { text, error, by: refusers };
      this.#reportRefused(error);
      return;
    }
    if (this.#watcher.isClosed) return;
    const activations = this.#prepare(rules, refusers);
    if (refusers.size > 0) return this.#refuseFor(text, refusers);
    this.current = rules;
    this.version = version;
    this.#text = text;
    this.loadedAtMs = Date.now();
    this.#refusedText = undefined;
    for (const activate of activations) ignoreErrors(activate);
    this.#reportReloaded();
  }

  /** Reports an error unless it is the one that was reported last. */
  refuse(error: unknown): void {
    if (messageOf(error) !== this.#reportedMessage) this.#reportRefused(error);
  }

  explain(refusal: unknown): unknown {
    // An error without a path is about the middleware's own options, not about the rules.
    if (!(refusal instanceof FloodgateError) || refusal.at.length === 0) return refusal;
    const mistakes = mistakesIn([refusal]);
    const { problemAt } = readRules(this.#text, this.name);
    const positions = mistakes.map(({ path }) => problemAt(path, ""));
    return mistakesError(this.name, mistakes, positions, refusal);
  }

  /** @param refusers receives the users that refuse these rules, with their errors. */
  #prepare(rules: RuleSet, refusers: Map<RuleUser, unknown>): (() => void)[] {
    const activations: (() => void)[] = [];
    for (const user of [...this.#users]) {
      try {
        activations.push(user.prepare(rules));
      } catch (error) {
        refusers.set(user, error);
      }
    }
    return activations;
  }

  /** Refuses a valid text because of the errors of users. */
  async #refuseFor(text: string, refusers: Map<RuleUser, unknown>): Promise<void> {
    const errors = [...refusers.values()];
    const mistakes = mistakesIn(errors);
    const refused = { text, error: errors[0], by: refusers };
    const isKnown = text === this.#refusedText?.text;
    this.#refusedText = refused;
    this.#mayPass = errors.every((error) => (error as FloodgateError | undefined)?.code === "FLOODGATE_NAME_TAKEN");
    const paths = mistakes.map(({ path }) => path);
    // The text is valid. But a second thread may lack the memory that the first one had.
    const atStart = { positions: paths.map(() => ({ line: 1, column: 1 })) };
    const { positions } = await parseAsync(text, this.name, false, paths).catch(() => atStart);
    // If all refusing users have left meanwhile, the next poll tries again.
    if (this.#watcher.isClosed || this.#refusedText !== refused) return;
    refused.error = mistakesError(this.name, mistakes, positions, errors[0]);
    if (isKnown) this.refuse(refused.error);
    else this.#reportRefused(refused.error);
  }

  #reportRefused(error: unknown): void {
    this.#reportedMessage = messageOf(error);
    this.refused = { error, atMs: Date.now() };
    this.#report({ type: "rules-refused", source: this.name, error });
  }

  /** Reports the active version: it is new, or a refusal is over. */
  #reportReloaded(): void {
    this.#reportedMessage = undefined;
    this.refused = undefined;
    this.#report({ type: "rules-reloaded", source: this.name, version: this.version });
  }

  #report(event: RulesEvent): void {
    const users = [...this.#users].filter(({ tell }) => tell !== undefined);
    const listeners = users.map((user) => (event: RulesEvent) => user.tell?.(event));
    if (this.#onEvent !== undefined) listeners.push(this.#onEvent);
    tellAll(listeners, event);
    // Without a listener, somebody could believe that a limit has changed.
    if (event.type === "rules-refused" && listeners.length === 0) warn(event.error);
  }
}

function warn(error: unknown): void {
  const code = error instanceof FloodgateError ? error.code : "FLOODGATE_INVALID_RULES";
  process.emitWarning(`New rules were refused. The previous rules stay in force:\n${messageOf(error)}`, { type: "FloodgateWarning", code });
}

/** An error or a rejection of one user must not affect the other users or the rules. */
function ignoreErrors(call: () => unknown): void {
  try {
    const result = call();
    if (isPromise(result)) result.then(undefined, () => undefined);
  } catch {
    // The listener itself failed, so nobody can be told.
  }
}

function versionOf({ text, version }: RulesText): string {
  return version ?? createHash("sha256").update(text).digest("hex").slice(0, 12);
}
