import type { RulesEvent } from "@floodgate/core/rules";
import { describe, expect, it, vi } from "vitest";
import { type LiveRules, liveRules } from "../src/index.js";
import { limited } from "./harness.js";
import { Origin, pollMs, settled, start, useFakeTime } from "./live-world.js";

useFakeTime();

describe("reads", () => {
  it("never overlap: changes during a read lead to one more read", async () => {
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

  it("that fail are reported once and retried by each poll", async () => {
    const { origin, rules, users, events } = await start();
    origin.failure = new Error("no route to host");
    await vi.advanceTimersByTimeAsync(3 * pollMs);
    expect(origin.reads).toBe(4);
    expect(users[0].reports).toEqual(["limits: the rules cannot be read: no route to host."]);
    expect(events).toMatchObject([{ type: "rules-refused", error: { code: "FLOODGATE_RULES_UNAVAILABLE", cause: origin.failure } }]);
    origin.failure = undefined;
    origin.text = limited(2);
    await vi.advanceTimersByTimeAsync(pollMs);
    expect(rules.current.rules[0]?.limit).toBe(2);
    origin.failure = new Error("again");
    await vi.advanceTimersByTimeAsync(pollMs);
    expect(events.map(({ type }) => type)).toEqual(["rules-refused", "rules-reloaded", "rules-refused"]);
  });

  it("that fail for a new reason are reported again", async () => {
    const { origin, users } = await start();
    for (const reason of ["no route to host", "no route to host", "no such bucket", "no route to host"]) {
      origin.failure = new Error(reason);
      await vi.advanceTimersByTimeAsync(pollMs);
    }
    const report = (reason: string): string => `limits: the rules cannot be read: ${reason}.`;
    expect(users[0].reports).toEqual([report("no route to host"), report("no such bucket"), report("no route to host")]);
  });

  it("that alternate between failing and an invalid version are reported each time", async () => {
    const { origin, users } = await start();
    await origin.becomes(limited(-1));
    const invalid = users[0].reports[0];
    origin.failure = new Error("no route to host");
    await vi.advanceTimersByTimeAsync(2 * pollMs);
    origin.failure = undefined;
    await vi.advanceTimersByTimeAsync(2 * pollMs);
    expect(users[0].reports).toEqual([invalid, "limits: the rules cannot be read: no route to host.", invalid]);
  });

  it.each<[string, Partial<Origin>]>([
    ["that fail", { failure: new Error("no route to host") }],
    ["of an invalid version", { text: limited(-1) }],
  ])("%s, then find the active version again, report `rules-reloaded` once", async (_, trouble) => {
    const { origin, rules, users, events } = await start();
    const { current, version } = rules;
    Object.assign(origin, trouble);
    await vi.advanceTimersByTimeAsync(2 * pollMs);
    Object.assign(origin, { text: limited(1), failure: undefined });
    await vi.advanceTimersByTimeAsync(3 * pollMs);
    expect(events).toEqual([expect.objectContaining({ type: "rules-refused" }), { type: "rules-reloaded", source: "limits", version }]);
    expect(rules.current).toBe(current);
    expect(users[0]).toMatchObject({ activated: [], events });
  });

  it("have no effect after `close`", async () => {
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
    expect(users[0].reports).toEqual([]);
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

  it("may start late: `close` waits until it has been stopped", async () => {
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
  ])("that %s is reported as a refusal, and polling continues", async (_, watch) => {
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

  it("that fails after `close` is not reported", async () => {
    const { rules, events } = await watching(async () => {
      await after(2);
      throw new Error("no such channel");
    });
    const closing = rules.close();
    await vi.advanceTimersByTimeAsync(2);
    await closing;
    expect(events).toEqual([]);
  });

  it.each([undefined, 5])("that returns %o is not stopped", async (answer) => {
    const { rules, events } = await watching(() => answer);
    await rules.close();
    expect(events).toEqual([]);
  });
});
