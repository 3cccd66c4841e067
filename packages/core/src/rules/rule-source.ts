import type { RulesEvent } from "../events/events.js";
import type { Exempt } from "./exempt.js";
import type { Grant } from "./grants.js";
import type { PlainRule } from "./rule.js";

/** One version of the rules from a file or a config database: plain data without functions. */
export interface RuleSet {
  readonly rules: readonly PlainRule[];
  /** Clients that no rule of this version counts. */
  readonly exempt?: Exempt;
}

/** A grant that begins, or ends if it has no plan. */
export interface GrantChange {
  readonly rule: string;
  /** The key's text, as events show it. */
  readonly key: string;
  readonly grant: Omit<Grant, "key"> | undefined;
  /** Who grants, for the event. */
  readonly by?: string | undefined;
}

/** Why a version of the rules was refused, and when, in milliseconds since the epoch. */
export interface Refusal {
  readonly error: unknown;
  readonly atMs: number;
}

/**
 * Rules that change while the server runs. A new version is activated in two steps: every user prepares it; if none refuses it, all users
 * activate it. If one refuses it, the previous version stays active for all.
 */
export interface RuleSource {
  /** The active version. */
  readonly current: RuleSet;
  /** Where the rules come from: a file's path, a Redis key. For people. */
  readonly name?: string;
  /** The source's name for the active version. */
  readonly version?: string;
  /** The refusal of the newest version; undefined if the newest version is active. */
  readonly refused?: Refusal | undefined;
  /** When the active version was last read and found good, in milliseconds since the epoch. */
  readonly loadedAtMs?: number;
  /**
   * Gives a key of a rule another plan until a time, in all processes; without a plan, ends its grant. Undefined if the source cannot be
   * written. It resolves when this process uses the new version.
   */
  grant?(change: GrantChange): Promise<void>;
  /** Adds a user, which prepares each version after `current`. Returns a function that removes it. */
  subscribe(user: RuleUser): () => void;
  /**
   * Adds positions (file and line) to an error that `prepare` threw for `current`, if the source knows them. Default: the error itself.
   */
  explain?(refusal: unknown): unknown;
}

/** A user of rules: a middleware. */
export interface RuleUser {
  /**
   * Compiles a version. Returns a function that activates it, which must not fail.
   * @throws FloodgateError if this user refuses it: its app lacks a key, for example. `at` is the path in the version.
   */
  prepare(rules: RuleSet): () => void;
  /** Receives the events of versions; missing if nobody listens. */
  readonly tell?: ((event: RulesEvent) => void) | undefined;
}

export function isRuleSource(value: unknown): value is RuleSource {
  return typeof value === "object" && value !== null && typeof (value as { subscribe?: unknown }).subscribe === "function";
}
