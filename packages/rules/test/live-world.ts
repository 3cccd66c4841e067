import type { RulesEvent } from "@floodgate/core/rules";
import { afterEach, beforeEach, vi } from "vitest";
import { type LiveRules, liveRules, type RulesOrigin, type RulesText } from "../src/index.js";
import { limited, User } from "./harness.js";

/** Polls happen only when a test advances the time. */
export function useFakeTime(): void {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });
}

export const pollMs = 1000;

/** An origin under the test's control. */
export class Origin implements RulesOrigin {
  readonly source = "limits";
  text: string;
  failure: Error | undefined;
  reads = 0;
  /** If set, reads wait here until the test calls these functions. */
  pending: (() => void)[] | undefined;
  changed: () => void = () => {};
  stopped = 0;

  constructor(text: string) {
    this.text = text;
  }

  async read(): Promise<RulesText> {
    this.reads++;
    const { text, failure, pending } = this;
    if (pending !== undefined) await new Promise<void>((resolve) => pending.push(resolve));
    if (failure !== undefined) throw failure;
    return { text };
  }

  watch(changed: () => void): () => void {
    this.changed = changed;
    return () => {
      this.stopped++;
    };
  }

  async becomes(text: string): Promise<void> {
    this.text = text;
    this.changed();
    await settled();
  }
}

export function settled(): Promise<unknown> {
  return vi.advanceTimersByTimeAsync(0);
}

export async function start(): Promise<{ origin: Origin; rules: LiveRules; users: [User, User]; events: RulesEvent[] }> {
  const origin = new Origin(limited(1));
  const events: RulesEvent[] = [];
  const rules = await liveRules(origin, { pollMs, onEvent: (event) => events.push(event) });
  const users: [User, User] = [new User(), new User()];
  for (const user of users) rules.subscribe(user);
  return { origin, rules, users, events };
}
