import type { RuleSet, RulesEvent, RuleUser } from "@floodgate/core/rules";
import { expect } from "vitest";

/** A rules file with one rule of this limit. */
export function limited(limit: number | string): string {
  return `rules:\n  - { name: posts, limit: ${limit}, window: 1m }\n`;
}

/** Options of `expect.poll`, patient enough for a busy machine. */
export const soon = { interval: 5, timeout: 15_000 };

/** A middleware, as a source of rules sees it. */
export class User implements RuleUser {
  /** The limits of the activated versions, in order. */
  readonly activated: unknown[] = [];
  readonly events: RulesEvent[] = [];
  /** May throw, to refuse a version. */
  check: (rules: RuleSet) => void = () => {};

  prepare(rules: RuleSet): () => void {
    this.check(rules);
    return () => this.activated.push(rules.rules[0]?.limit);
  }

  tell(event: RulesEvent): void {
    this.events.push(event);
  }

  /** The events so far: `reloaded`, `granted`, or the message of a refusal. */
  get reports(): string[] {
    return this.events.map((event) => (event.type === "rules-refused" ? (event.error as Error).message : event.type.replace("rules-", "")));
  }

  /** Waits until there are at least this many events, and returns them. */
  async reported(count: number): Promise<string[]> {
    await expect.poll(() => this.events.length, soon).toBeGreaterThanOrEqual(count);
    return this.reports;
  }
}
