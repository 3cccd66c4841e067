import { FloodgateError, type FloodgateEvent, observe } from "@floodgate/core";
import type { RulesEvent, RuleUser } from "@floodgate/core/rules";
import { memoryStore, rateLimit } from "@floodgate/express";
import { describe, expect, it, vi } from "vitest";
import { liveRules, RulesError, type RulesText } from "../src/index.js";
import { limited, User } from "./harness.js";
import { Origin, pollMs, start, useFakeTime } from "./live-world.js";

useFakeTime();

describe("a new version", () => {
  it("is activated for all users in one step, then reported", async () => {
    const { origin, rules, users, events } = await start();
    const before = rules.version;
    const seen: unknown[] = [];
    const witness: RuleUser = {
      prepare: (next) => {
        seen.push(["prepare", rules.current.rules[0]?.limit, next.rules[0]?.limit, users.map(({ activated }) => activated.length)]);
        return () => seen.push(["activate", rules.current.rules[0]?.limit]);
      },
      tell: () => seen.push(["tell", users.map(({ activated }) => activated.length)]),
    };
    rules.subscribe(witness);
    await origin.becomes(limited(2));
    expect(seen).toEqual([
      ["prepare", 1, 2, [0, 0]],
      ["activate", 2],
      ["tell", [1, 1]],
    ]);
    expect(users.map(({ activated }) => activated)).toEqual([[2], [2]]);
    expect(rules.version).not.toBe(before);
    expect(events).toEqual([{ type: "rules-reloaded", source: "limits", version: rules.version }]);
  });

  it("is not reported if the text is the same", async () => {
    const { origin, users } = await start();
    await origin.becomes(limited(1));
    await vi.advanceTimersByTimeAsync(5 * pollMs);
    expect(origin.reads).toBe(7);
    expect(users[0].reports).toEqual([]);
  });

  it("has the version of its origin", async () => {
    let version = "v7";
    const rules = await liveRules({ source: "s", read: async () => ({ text: limited(1), version }) }, { pollMs });
    expect(rules.version).toBe("v7");
    version = "v8";
    await vi.advanceTimersByTimeAsync(pollMs);
    expect(rules.version).toBe("v8");
  });

  it("is found by polling if the origin does not report it", async () => {
    const { origin, users } = await start();
    origin.text = limited(2);
    await vi.advanceTimersByTimeAsync(pollMs);
    expect(users[0].activated).toEqual([2]);
  });

  it("is read only if the revision differs or the origin reports a change", async () => {
    const origin = new Origin(limited(1));
    let revision = "a";
    const rules = await liveRules(Object.assign(origin, { revision: async () => revision }), { pollMs });
    await vi.advanceTimersByTimeAsync(3 * pollMs);
    expect(origin.reads).toBe(1);
    revision = "b";
    await vi.advanceTimersByTimeAsync(3 * pollMs);
    expect(origin.reads).toBe(2);
    await origin.becomes(limited(2));
    expect(origin.reads).toBe(3);
    expect(rules.current.rules[0]?.limit).toBe(2);
  });

  it("is not reported to users that have unsubscribed", async () => {
    const { origin, rules, users } = await start();
    const late = new User();
    const leave = rules.subscribe(late);
    leave();
    leave();
    await origin.becomes(limited(2));
    expect(late.reports).toEqual([]);
    expect(users[0].reports).toEqual(["reloaded"]);
  });
});

describe("an invalid version", () => {
  it("is refused as a whole and reported once, with positions; the previous version stays active", async () => {
    const { origin, rules, users, events } = await start();
    const { current, version } = rules;
    await origin.becomes(limited(-1));
    await vi.advanceTimersByTimeAsync(5 * pollMs);
    expect(rules.current).toBe(current);
    expect(rules.version).toBe(version);
    const [refused] = events as [RulesEvent & { error: RulesError }];
    expect(refused).toMatchObject({ type: "rules-refused", source: "limits" });
    expect(refused.error).toBeInstanceOf(RulesError);
    expect(refused.error.problems).toMatchObject([{ line: 2, column: 27, path: ["rules", 0, "limit"] }]);
    for (const user of users) expect(user.events).toEqual(events);
    expect(events).toHaveLength(1);
    await origin.becomes(limited(3));
    expect(users.map(({ activated }) => activated)).toEqual([[3], [3]]);
    await origin.becomes(limited(-1));
    expect(events.map(({ type }) => type)).toEqual(["rules-refused", "rules-reloaded", "rules-refused"]);
  });

  it("shows on the source until a version is active again, and process-wide observers are told of both once", async () => {
    const heard: FloodgateEvent[] = [];
    const stop = observe((event) => heard.push(event));
    const { origin, rules, users } = await start();
    expect(rules).toMatchObject({ name: "limits", refused: undefined });
    await origin.becomes(limited(-1));
    expect(rules.refused).toEqual({ error: (heard[0] as RulesEvent & { error: unknown }).error, atMs: Date.now() });
    await origin.becomes(limited(3));
    stop();
    expect(rules.refused).toBeUndefined();
    expect(heard).toEqual(users[0].events);
  });

  it("is a process warning if nobody listens to events", async () => {
    const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
    const origin = new Origin(limited(1));
    const rules = await liveRules(origin, { pollMs });
    const silent: RuleUser = { prepare: () => () => {} };
    rules.subscribe(silent);
    await origin.becomes(limited(-1));
    expect(warn.mock.calls).toEqual([
      [
        expect.stringMatching(/refused\. The previous rules stay in force:\nlimits:2:27: /),
        { type: "FloodgateWarning", code: "FLOODGATE_INVALID_RULES" },
      ],
    ]);
    rules.subscribe(new User());
    await origin.becomes(limited(-1));
    expect(warn).toHaveBeenCalledTimes(1);
    warn.mockRestore();
    await rules.close();
  });

  it("is reported again if the text changed but the mistake did not", async () => {
    const { origin, users } = await start();
    await origin.becomes(limited(-1));
    await origin.becomes(`${limited(-1)}# not yet`);
    expect(users[0].reports).toEqual([expect.stringMatching(/^limits:2:27: /), users[0].reports[0]]);
  });

  it("is reported again after a valid version", async () => {
    const { origin, events } = await start();
    await origin.becomes(limited(-1));
    await origin.becomes(limited(1));
    await origin.becomes(limited(-1));
    expect(events.map(({ type }) => type)).toEqual(["rules-refused", "rules-reloaded", "rules-refused"]);
  });

  it("that one user refuses is refused for all, with the position of the mistake", async () => {
    const { origin, rules, users } = await start();
    users[1].check = () => {
      throw new FloodgateError("FLOODGATE_UNKNOWN_KEY", "rateLimit: `key` is unknown.", { at: ["rules", 0, "name"] });
    };
    await origin.becomes(limited(2));
    expect(rules.current.rules[0]?.limit).toBe(1);
    expect(users.map(({ activated }) => activated)).toEqual([[], []]);
    for (const user of users) expect(user.reports).toEqual(["limits:2:13: rateLimit: `key` is unknown."]);
  });

  it("lists the mistakes that several users find, each once", async () => {
    const { origin, rules, users, events } = await start();
    const both = new User();
    rules.subscribe(both);
    const fault = new TypeError("boom");
    users[0].check = both.check = () => {
      throw new FloodgateError("FLOODGATE_UNKNOWN_KEY", "no such key", { at: ["rules", 0] });
    };
    users[1].check = () => {
      throw fault;
    };
    await origin.becomes(limited(2));
    const [refused] = events as [RulesEvent & { error: RulesError }];
    expect(refused.error.message).toBe("limits:1:1: boom\nlimits:2:5: no such key");
    expect(refused.error.cause).toBeInstanceOf(FloodgateError);
  });

  it("lists all mistakes that one user finds, each at its position", async () => {
    const { origin, users } = await start();
    const mistake = (message: string, ...at: string[]) => new FloodgateError("FLOODGATE_UNKNOWN_KEY", message, { at: ["rules", 0, ...at] });
    users[0].check = () => {
      const cause = new AggregateError([mistake("rateLimit: no key", "name"), mistake("rateLimit: no cost", "limit")]);
      throw new FloodgateError("FLOODGATE_UNKNOWN_KEY", "rateLimit: no key", { at: ["rules", 0, "name"], cause });
    };
    await origin.becomes(limited(2));
    expect(users[1].reports).toEqual(["limits:2:13: rateLimit: no key\nlimits:2:27: rateLimit: no cost"]);
  });

  it.each([[[]], [[new Error("ECONNREFUSED")]]])("shows the error of a user if its cause is not a list of mistakes: %o", async (errors) => {
    const { origin, users } = await start();
    users[0].check = () => {
      throw new Error("no store", { cause: new AggregateError(errors) });
    };
    await origin.becomes(limited(2));
    expect(users[1].reports).toEqual(["limits:1:1: no store"]);
  });

  it("lists a mistake of several users once, whatever the users are called", async () => {
    const { origin, rules, users } = await start();
    const refuses = (message: string, word: string) => () => {
      throw new FloodgateError("FLOODGATE_UNKNOWN_KEY", message, { at: ["rules", 0, word] });
    };
    const [third, fourth] = [new User(), new User()];
    rules.subscribe(third);
    rules.subscribe(fourth);
    users[0].check = refuses("rateLimit: no key", "name");
    users[1].check = refuses("floodgate: no key", "name");
    third.check = refuses("rateLimit: no cost", "name");
    fourth.check = refuses("rateLimit: no key", "limit");
    await origin.becomes(limited(2));
    expect(third.reports).toEqual(["limits:2:13: rateLimit: no key\nlimits:2:13: rateLimit: no cost\nlimits:2:27: rateLimit: no key"]);
  });

  it("is tried again once all users that refused it have unsubscribed", async () => {
    const origin = Object.assign(new Origin(limited(1)), { revision: async () => origin.text });
    const rules = await liveRules(origin, { pollMs });
    const users = [new User(), new User(), new User()] as const;
    const [stays, ...refusers] = users;
    const [, leaveFirst, leaveLast] = users.map((user) => rules.subscribe(user)) as [() => void, () => void, () => void];
    for (const user of refusers) {
      user.check = () => {
        throw new Error("not with me");
      };
    }
    await origin.becomes(limited(2));
    leaveFirst();
    await vi.advanceTimersByTimeAsync(2 * pollMs);
    expect(stays.reports).toEqual(["limits:1:1: not with me"]);
    leaveLast();
    await vi.advanceTimersByTimeAsync(pollMs);
    expect(stays.reports.slice(1)).toEqual(["reloaded"]);
    expect(rules.current.rules[0]?.limit).toBe(2);
  });

  it.each([true, false])(
    "for a name of another source is told once, and tried again until that gives it up; with revisions: %s",
    async (has) => {
      const named = (...names: string[]) => `rules: [${names.map((name) => `{ name: ${name}, limit: 1, window: 1m }`)}]`;
      const follow = async (...names: string[]) => {
        const origin = new Origin(named(...names));
        const events: RulesEvent[] = [];
        const revision = async () => (has ? origin.text : undefined);
        const rules = await liveRules(Object.assign(origin, { revision }), { pollMs, onEvent: (event) => events.push(event) });
        return { origin, events, rules };
      };
      const store = memoryStore();
      const [from, to] = [await follow("moves", "stays"), await follow("waits")];
      for (const { rules } of [from, to]) rateLimit({ rules, store });
      await to.origin.becomes(named("waits", "moves"));
      await vi.advanceTimersByTimeAsync(9 * pollMs);
      expect(to.events).toMatchObject([{ type: "rules-refused", error: { code: "FLOODGATE_INVALID_RULES" } }]);
      await from.origin.becomes(named("stays"));
      await vi.advanceTimersByTimeAsync(2 * pollMs);
      expect(to.events.slice(1)).toMatchObject([{ type: "rules-reloaded" }]);
      expect(to.rules.current.rules).toHaveLength(2);
    },
  );

  it("is not tried again if its text is invalid", async () => {
    const { origin, rules, events } = await start();
    const leave = rules.subscribe(new User());
    await origin.becomes(limited(-1));
    leave();
    await vi.advanceTimersByTimeAsync(2 * pollMs);
    expect(events).toHaveLength(1);
  });
});

describe("a user that throws", () => {
  it("when it activates a version or gets an event does not affect the others", async () => {
    const { origin, users, rules } = await start();
    const throwing: RuleUser = {
      prepare: () => () => {
        throw new Error("activate");
      },
      tell: () => {
        throw new Error("tell");
      },
    };
    rules.subscribe(throwing);
    const last = new User();
    rules.subscribe(last);
    await origin.becomes(limited(2));
    expect(last.activated).toEqual([2]);
    expect([...users, last].map(({ reports }) => reports)).toEqual([["reloaded"], ["reloaded"], ["reloaded"]]);
  });

  it("asynchronously does not affect the others", async () => {
    const origin = new Origin(limited(1));
    let failed = 0;
    // Not a spy, which would handle the rejection: an unhandled one fails the run.
    const late = async (): Promise<never> => {
      failed++;
      throw new Error("later");
    };
    const rules = await liveRules(origin, { pollMs, onEvent: late });
    rules.subscribe({ prepare: () => late, tell: late });
    const last = new User();
    rules.subscribe(last);
    await origin.becomes(limited(2));
    expect(failed).toBe(3);
    expect(last.reports).toEqual(["reloaded"]);
  });

  it("may be the `onEvent` of the source", async () => {
    const origin = new Origin(limited(1));
    const onEvent = vi.fn(() => {
      throw new Error("no log");
    });
    const rules = await liveRules(origin, { pollMs, onEvent });
    await origin.becomes(limited(2));
    await origin.becomes(limited(-1));
    expect(onEvent).toHaveBeenCalledTimes(2);
    expect(rules.current.rules[0]?.limit).toBe(2);
  });
});

describe("the first version", () => {
  it.each([undefined, null, {}, "limits.yaml", { read: async () => ({ text: limited(1) }) }])("needs an origin: %o", async (origin) => {
    await expect(liveRules(origin as never)).rejects.toThrow(
      "liveRules: `origin` must be an object with a text `source` and a function `read`, but was ",
    );
  });

  it("must be readable", async () => {
    const origin = new Origin(limited(1));
    origin.failure = new Error("no such bucket");
    const error = { code: "FLOODGATE_RULES_UNAVAILABLE", message: "limits: the rules cannot be read: no such bucket." };
    await expect(liveRules(origin)).rejects.toMatchObject(error);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("must be valid", async () => {
    await expect(liveRules(new Origin(limited(-1)))).rejects.toBeInstanceOf(RulesError);
    for (const read of [{}, undefined, null, limited(1)]) {
      await expect(liveRules({ source: "s", read: async () => read as RulesText })).rejects.toMatchObject({
        code: "FLOODGATE_RULES_UNAVAILABLE",
        message: "s: the rules cannot be read: `read` returned no text.",
      });
    }
    expect(vi.getTimerCount()).toBe(0);
  });

  it("that a middleware refuses is reported as a later one would be: with the position of each mistake", async () => {
    const text = "rules:\n  - { name: a, limit: 1, window: 1m, key: tenannt }\n  - { name: b, limit: 1, window: 1m, cost: rows }\n";
    const keys = { tenant: () => "acme" };
    const first = await liveRules(new Origin(text));
    const error = thrownBy(() => rateLimit({ rules: first, keys })) as RulesError;
    expect(error).toBeInstanceOf(RulesError);
    expect(error.message).toMatch(
      /^limits:2:43: rateLimit: rules\[0\]: `key` .*"tenannt".*\nlimits:3:44: rateLimit: rules\[1\]: `cost` .*"rows"/,
    );

    const { origin, rules, events } = await start();
    rateLimit({ rules, keys });
    await origin.becomes(text);
    expect(events).toMatchObject([{ type: "rules-refused", error: { message: error.message, problems: error.problems } }]);
  });

  it("is not named in errors about a middleware's own options", async () => {
    const rules = await liveRules(new Origin(limited(1)));
    const error = thrownBy(() => rateLimit({ rules, limit: 5, window: "1m" }));
    expect(error).toMatchObject({
      code: "FLOODGATE_CONFLICTING_OPTIONS",
      message: expect.stringMatching(/^rateLimit: with `rules` each rule says/),
    });
  });

  it.each([
    [{ pollMs: 0 }, /`pollMs` must be a whole number of at least 1/],
    [{ pollms: 5 }, /Did you mean `pollMs`/],
    [{ onEvent: "log" }, /`onEvent` must be a function/],
  ])("needs valid options: %o", async (options, message) => {
    await expect(liveRules(new Origin(limited(1)), options as never)).rejects.toThrow(message);
  });
});

function thrownBy(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error("Nothing was thrown.");
}
