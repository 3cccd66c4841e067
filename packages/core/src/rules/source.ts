import type { RulesEvent } from "../limits/events.js";
import type { Exempt } from "./exempt.js";
import type { PlainRule } from "./rule.js";

/** One version of the rules, as a file or a config database says them: plain data, no functions. */
export interface RuleSet {
  readonly rules: readonly PlainRule[];
  /** Whom no rule of this version counts, beside those whom a rule itself exempts. */
  readonly exempt?: Exempt;
}

/**
 * Rules that change while the server runs. A source takes a new version in two steps: every user makes it ready, and only where
 * none refuses it do all of them put it in force; where one does, the last version stays for all.
 */
export interface RuleSource {
  /** The version in force. */
  readonly current: RuleSet;
  /** Adds who is asked about each version that comes after `current`. Answers how to leave. */
  subscribe(user: RuleUser): () => void;
  /**
   * Makes of what `prepare` has thrown at `current` what the app is told: a source that knows in which file and line the mistakes
   * stand says so. Default: what was thrown.
   */
  explain?(refusal: unknown): unknown;
}

/** Who puts rules in force: a middleware. */
export interface RuleUser {
  /**
   * Makes a version ready, and answers what puts it in force, which cannot fail.
   * @throws FloodgateError where this user cannot take it: a key that its app does not define, say. `at` says where in the version.
   */
  prepare(rules: RuleSet): () => void;
  /** Is told what became of a version; missing where nobody listens. */
  readonly tell?: ((event: RulesEvent) => void) | undefined;
}

export function isRuleSource(value: unknown): value is RuleSource {
  return typeof value === "object" && value !== null && typeof (value as { subscribe?: unknown }).subscribe === "function";
}
