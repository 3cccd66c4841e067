import type { RuleSet, RulesEvent, RuleUser } from "@floodgate/core/rules";
import { expect } from "vitest";

/** A text of one rule with this limit. */
export function limited(limit: number | string): string {
  return `rules:\n  - { name: posts, limit: ${limit}, window: 1m }\n`;
}

/** Wait for this: a machine that is busy may take its time. */
export const soon = { interval: 5, timeout: 15_000 };

/** A middleware as a source sees one. */
export class User implements RuleUser {
  /** Limits of the versions put in force, in order. */
  readonly inForce: unknown[] = [];
  readonly events: RulesEvent[] = [];
  /** May refuse a version. */
  judge: (rules: RuleSet) => void = () => {};

  prepare(rules: RuleSet): () => void {
    this.judge(rules);
    return () => this.inForce.push(rules.rules[0]?.limit);
  }

  tell(event: RulesEvent): void {
    this.events.push(event);
  }

  /** What it has been told: `reloaded`, or the message of a refusal. */
  get told(): string[] {
    return this.events.map((event) => (event.type === "rules-reloaded" ? "reloaded" : (event.error as Error).message));
  }

  /** Waits until it has been told as many things as this, and answers them. */
  async hears(count: number): Promise<string[]> {
    await expect.poll(() => this.events.length, soon).toBeGreaterThanOrEqual(count);
    return this.told;
  }
}
