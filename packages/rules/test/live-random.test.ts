import { FloodgateError } from "@floodgate/core";
import type { RuleSet, RulesEvent, RuleUser } from "@floodgate/core/rules";
import fc from "fast-check";
import { expect, it, vi } from "vitest";
import { runs } from "../../../test/runs.js";
import { type LiveRules, liveRules } from "../src/index.js";
import { limited } from "./harness.js";
import { Origin, pollMs, settled, useFakeTime } from "./live-world.js";

useFakeTime();

/** An origin whose revision, if it has one, changes with each text. */
class RevisedOrigin extends Origin {
  revision?: () => Promise<string | undefined>;
  writes = 0;

  constructor(text: string, hasRevision: boolean) {
    super(text);
    if (hasRevision) this.revision = async () => `${this.writes}`;
  }

  write(text: string): void {
    this.text = text;
    this.writes++;
  }
}

/** A middleware that refuses one limit for good, and others as long as their name is taken. */
class Middleware implements RuleUser {
  active: unknown;
  readonly refuses: number;
  readonly leave: () => void;
  readonly #taken: ReadonlySet<unknown>;

  constructor(rules: LiveRules, refuses: number, taken: ReadonlySet<unknown>) {
    this.active = rules.current.rules[0]?.limit;
    this.refuses = refuses;
    this.#taken = taken;
    this.leave = rules.subscribe(this);
  }

  prepare({ rules: [rule] }: RuleSet): () => void {
    const limit = rule?.limit;
    const refused = (code: "FLOODGATE_UNKNOWN_KEY" | "FLOODGATE_NAME_TAKEN") =>
      new FloodgateError(code, code, { at: ["rules", 0, "name"] });
    if (limit === this.refuses) throw refused("FLOODGATE_UNKNOWN_KEY");
    if (this.#taken.has(limit)) throw refused("FLOODGATE_NAME_TAKEN");
    return () => {
      this.active = limit;
    };
  }
}

const limit = fc.integer({ min: 1, max: 2 });
const step = fc.record({
  does: fc.constantFrom("writes", "writes", "tells", "polls", "polls", "fails", "works", "slows", "speeds", "joins", "leaves", "takes"),
  limit,
  text: fc.oneof(limit, fc.constantFrom("-1", "x")),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

it("all users always have one version, and in the end the newest one that none of them refuses", async () => {
  const play = async (hasRevision: boolean, steps: readonly Step[]): Promise<void> => {
    const origin = new RevisedOrigin(limited(9), hasRevision);
    const events: RulesEvent[] = [];
    const rules = await liveRules(origin, { pollMs, onEvent: (event) => events.push(event) });
    const users: Middleware[] = [];
    const taken = new Set<unknown>();
    let newest: number | string = 9;
    const current = (): unknown => rules.current.rules[0]?.limit;
    const speedUp = (): void => {
      for (const go of origin.pending ?? []) go();
      origin.pending = undefined;
    };
    const acts: Record<Step["does"], (step: Step) => unknown> = {
      writes: ({ text }) => {
        newest = text;
        origin.write(limited(text));
      },
      tells: () => origin.changed(),
      polls: () => vi.advanceTimersByTimeAsync(pollMs),
      fails: () => {
        origin.failure = new Error("away");
      },
      works: () => {
        origin.failure = undefined;
      },
      slows: () => {
        origin.pending ??= [];
      },
      speeds: speedUp,
      joins: ({ limit }) => limit !== current() && users.push(new Middleware(rules, limit, taken)),
      leaves: () => users.shift()?.leave(),
      takes: ({ limit }) => taken.delete(limit) || taken.add(limit),
    };
    const check = (): void => {
      expect(users.map(({ active }) => active)).toEqual(users.map(current));
      expect(rules.refused !== undefined).toBe(events.at(-1)?.type === "rules-refused");
    };
    for (const step of steps) {
      await acts[step.does](step);
      await settled();
      check();
    }
    origin.failure = undefined;
    speedUp();
    for (let i = 0; i < 4; i++) await vi.advanceTimersByTimeAsync(pollMs);
    check();
    const isRefused =
      typeof newest === "string" || users.some(({ refuses }) => refuses === newest) || (users.length > 0 && taken.has(newest));
    if (current() === newest) expect(rules.refused).toBeUndefined();
    else expect([isRefused, rules.refused !== undefined]).toEqual([true, true]);
    await rules.close();
  };
  await fc.assert(fc.asyncProperty(fc.boolean(), fc.array(step, { minLength: 1, maxLength: 40, size: "max" }), play), runs(300));
});
