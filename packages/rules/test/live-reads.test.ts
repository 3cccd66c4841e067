import type { RulesEvent } from "@floodgate/core/rules";
import { describe, expect, it, vi } from "vitest";
import { type LiveRules, liveRules } from "../src/index.js";
import { limited } from "./harness.js";
import { Origin, pollMs, settled, start, useFakeTime } from "./live-world.js";

useFakeTime();

describe("reads", () => {
  it("never overlap: changes during one lead to one more", async () => {
    const { origin, rules } = await start();
    origin.pending = [];
    origin.text = limited(2);
    origin.changed();
    await settled();
    origin.text = limited(3);
    for (let i = 0; i < 5; i++) origin.changed();
    await vi.advanceTimersByTimeAsync(3 * pollMs);
    expect(origin.pending).toHaveLength(1);
    origin.pending[0]?.();
    await settled();
    expect(rules.current.rules[0]?.limit).toBe(2);
    expect(origin.pending).toHaveLength(2);
    origin.pending[1]?.();
    await settled();
    expect(rules.current.rules[0]?.limit).toBe(3);
    expect(origin.reads).toBe(3);
  });

  it("that fail are told once, and tried again by each poll", async () => {
    const { origin, rules, users, events } = await start();
    origin.failure = new Error("no route to host");
    await vi.advanceTimersByTimeAsync(3 * pollMs);
    expect(origin.reads).toBe(4);
    expect(users[0].told).toEqual(["limits: the rules cannot be read: no route to host."]);
    expect(events).toMatchObject([{ type: "rules-refused", error: { code: "FLOODGATE_RULES_UNAVAILABLE", cause: origin.failure } }]);
    origin.failure = undefined;
    origin.text = limited(2);
    await vi.advanceTimersByTimeAsync(pollMs);
    expect(rules.current.rules[0]?.limit).toBe(2);
    origin.failure = new Error("again");
    await vi.advanceTimersByTimeAsync(pollMs);
    expect(events.map(({ type }) => type)).toEqual(["rules-refused", "rules-reloaded", "rules-refused"]);
  });

  it("that fail for another reason than before are told anew", async () => {
    const { origin, users } = await start();
    for (const reason of ["no route to host", "no route to host", "no such bucket", "no route to host"]) {
      origin.failure = new Error(reason);
      await vi.advanceTimersByTimeAsync(pollMs);
    }
    const told = (reason: string): string => `limits: the rules cannot be read: ${reason}.`;
    expect(users[0].told).toEqual([told("no route to host"), told("no such bucket"), told("no route to host")]);
  });

  it("that fail after a bad version, and find it again, are told as what there is each time", async () => {
    const { origin, users } = await start();
    await origin.becomes(limited(-1));
    const bad = users[0].told[0];
    origin.failure = new Error("no route to host");
    await vi.advanceTimersByTimeAsync(2 * pollMs);
    origin.failure = undefined;
    await vi.advanceTimersByTimeAsync(2 * pollMs);
    expect(users[0].told).toEqual([bad, "limits: the rules cannot be read: no route to host.", bad]);
  });

  it.each<[string, Partial<Origin>]>([
    ["that fail", { failure: new Error("no route to host") }],
    ["of a bad version", { text: limited(-1) }],
  ])("%s, until they find the version in force again: that is told, once", async (_, trouble) => {
    const { origin, rules, users, events } = await start();
    const { current, version } = rules;
    Object.assign(origin, trouble);
    await vi.advanceTimersByTimeAsync(2 * pollMs);
    Object.assign(origin, { text: limited(1), failure: undefined });
    await vi.advanceTimersByTimeAsync(3 * pollMs);
    expect(events).toEqual([expect.objectContaining({ type: "rules-refused" }), { type: "rules-reloaded", source: "limits", version }]);
    expect(rules.current).toBe(current);
    expect(users[0]).toMatchObject({ inForce: [], events });
  });

  it("end with the source: what comes later changes nothing", async () => {
    const { origin, rules, users } = await start();
    origin.pending = [];
    origin.text = limited(2);
    origin.changed();
    await settled();
    const closed = rules.close();
    expect(rules.close()).toBe(closed);
    await closed;
    origin.pending[0]?.();
    origin.changed();
    await vi.advanceTimersByTimeAsync(5 * pollMs);
    expect(origin).toMatchObject({ reads: 2, stopped: 1 });
    expect(rules.current.rules[0]?.limit).toBe(1);
    expect(users[0].told).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("a watch", () => {
  async function watching(watch: unknown): Promise<{ origin: Origin; rules: LiveRules; events: RulesEvent[] }> {
    const origin = Object.assign(new Origin(limited(1)), { watch: watch as () => () => void });
    const events: RulesEvent[] = [];
    const rules = await liveRules(origin, { pollMs, onEvent: (event) => events.push(event) });
    return { origin, rules, events };
  }

  const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

  it("may begin later: the source is closed once it has been stopped", async () => {
    const steps: string[] = [];
    const { rules } = await watching(async () => {
      await after(2);
      steps.push("begun");
      return async () => {
        await after(2);
        steps.push("stopped");
      };
    });
    const closing = rules.close().then(() => steps.push("closed"));
    await vi.advanceTimersByTimeAsync(4);
    await closing;
    expect(steps).toEqual(["begun", "stopped", "closed"]);
  });

  it.each<[string, () => unknown]>([
    ["rejects", () => Promise.reject(new Error("no such channel."))],
    [
      "throws",
      () => {
        throw new Error("no such channel.");
      },
    ],
  ])("that %s is told as a refusal, and the polls go on", async (_, watch) => {
    const { origin, rules, events } = await watching(watch);
    await settled();
    expect(events).toMatchObject([
      {
        type: "rules-refused",
        source: "limits",
        error: { code: "FLOODGATE_RULES_UNAVAILABLE", message: "limits: changes of the rules cannot be watched: no such channel." },
      },
    ]);
    origin.text = limited(2);
    await vi.advanceTimersByTimeAsync(pollMs);
    expect(rules.current.rules[0]?.limit).toBe(2);
    await rules.close();
  });

  it("that fails once the source is closed is told to nobody", async () => {
    const { rules, events } = await watching(async () => {
      await after(2);
      throw new Error("no such channel");
    });
    const closing = rules.close();
    await vi.advanceTimersByTimeAsync(2);
    await closing;
    expect(events).toEqual([]);
  });

  it.each([undefined, 5])("that answers %o has nothing to stop", async (answer) => {
    const { rules, events } = await watching(() => answer);
    await rules.close();
    expect(events).toEqual([]);
  });
});
