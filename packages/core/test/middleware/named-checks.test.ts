import { describe, expect, it } from "vitest";
import { memoryStore } from "../../../store-memory/src/index.js";
import { checkNamed, type NamedCheck, type NamedDecisions, type Outcome, RateLimit } from "../../src/adapter.js";
import type { FloodgateEvent, Rule } from "../../src/index.js";
import { reader } from "../reader.js";

const window = "365d";

function limitOf(rules: readonly Rule<object>[], onEvent?: (event: FloodgateEvent) => void) {
  const plan = rules.some(({ plans }) => plans !== undefined) ? { plan: () => undefined } : {};
  const options = { rules, ...plan, ...(onEvent && { onEvent }) };
  return new RateLimit<object>("test", options as never, [], reader, () => memoryStore({ clock: () => 1e12 }));
}

const small: Rule<object> = { name: "small", limit: 2, window };
const large: Rule<object> = { name: "large", key: "global", limit: 10, window, plans: { pro: { limit: 100 } } };

function check(limit: RateLimit<object>, ...named: NamedCheck[]): NamedDecisions {
  return checkNamed(limit, named) as NamedDecisions;
}

describe("rules that are checked by name", () => {
  it("are charged all together, or not at all", () => {
    const limit = limitOf([small, large]);
    const both: NamedCheck[] = [
      { name: "small", key: "203.0.113.9", cost: 2 },
      { name: "large", key: "global", cost: 3 },
    ];
    expect(check(limit, ...both)).toMatchObject({ allowed: true, decisions: [{ remaining: 0 }, { remaining: 7 }] });
    expect(check(limit, ...both)).toMatchObject({ allowed: false, decision: { name: "small" }, decisions: [{ allowed: false }, {}] });
    expect(limit.version.limiters.get("large")?.peek("global")).toMatchObject({ remaining: 7 });
  });

  it("share their counts with requests", () => {
    const limit = limitOf([small]);
    limit.decide({});
    expect(check(limit, { name: "small", key: "192.0.2.1" })).toMatchObject({ decision: { remaining: 0 } });
    expect(limit.decide({})).toMatchObject({ action: "reject", checks: [{ key: "192.0.2.1" }], decisions: [{ allowed: false }] });
  });

  it("count under the plan that is given, and else under the rule's own policy", () => {
    const limit = limitOf([large]);
    expect(check(limit, { name: "large", key: "a", plan: "pro" })).toMatchObject({ decision: { limit: 100 } });
    expect(check(limit, { name: "large", key: "b", plan: "none" })).toMatchObject({ decision: { limit: 10 } });
  });

  it("reject nothing in shadow mode", () => {
    const limit = limitOf([{ ...small, mode: "shadow" }]);
    expect(check(limit, { name: "small", key: "192.0.2.1", cost: 3 })).toMatchObject({ allowed: true, decision: { allowed: false } });
  });

  it("do not count exempt keys", () => {
    const limit = limitOf([{ ...small, exempt: { keys: ["192.0.2.1"] } }, large]);
    expect(check(limit, { name: "small", key: "192.0.2.1" })).toEqual({
      allowed: true,
      decision: undefined,
      checks: [undefined],
      decisions: [undefined],
    });
    const both = check(limit, { name: "small", key: "192.0.2.1" }, { name: "large", key: "global" });
    expect(both).toMatchObject({ allowed: true, decisions: [undefined, { name: "large" }] });
  });

  it("are rejected by a limit of 0 without the other limits", () => {
    const limit = limitOf([{ ...small, limit: 0 }, large]);
    const both = check(limit, { name: "large", key: "global" }, { name: "small", key: "192.0.2.1" });
    expect(both).toMatchObject({ allowed: false, decision: { name: "small", retryAfterMs: Number.POSITIVE_INFINITY } });
    expect(both.decisions[0]).toBeUndefined();
  });

  it("count rejections towards a ban", () => {
    const events: FloodgateEvent[] = [];
    const limit = limitOf(
      [{ ...small, ban: { after: 1, within: "1m", for: "1h" } }],
      (event) => event.type !== "request" && events.push(event),
    );
    check(limit, { name: "small", key: "192.0.2.1", cost: 2 });
    expect(check(limit, { name: "small", key: "192.0.2.1" })).toMatchObject({ allowed: false });
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(["allowed", "banned", "limited"]));
    expect(limit.version.limiters.get("small")?.peek("192.0.2.1")).toMatchObject({ allowed: false });
  });

  it.each<[string, readonly NamedCheck[], string]>([
    ["an unknown rule", [{ name: "smal", key: "a" }], "FLOODGATE_UNKNOWN_RULE"],
    ["a name that objects inherit", [{ name: "constructor", key: "a" }], "FLOODGATE_UNKNOWN_RULE"],
    ["an invalid cost", [{ name: "large", key: "a", cost: 0.5 }], "FLOODGATE_INVALID_COST"],
    ["an invalid key", [{ name: "large", key: {} as never }], "FLOODGATE_INVALID_KEY"],
    ["a client without a key", [{ name: "large", key: { missingKeyIp: "192.0.2.1" } as never }], "FLOODGATE_INVALID_KEY"],
    [
      "one key twice",
      [
        { name: "large", key: 1 },
        { name: "large", key: "1" },
      ],
      "FLOODGATE_DUPLICATE_NAME",
    ],
  ])("refuse %s", (_, named, code) => {
    const limit = limitOf([small, large]);
    expect(() => check(limit, ...named)).toThrow(expect.objectContaining({ code }));
    expect(limit.version.limiters.get("large")?.peek("a")).toMatchObject({ remaining: 10 });
  });
});

it("An outcome says what each rule asked and decided", () => {
  const limit = limitOf([small, { ...large, mode: "shadow" }]);
  const { checks, decisions } = limit.decide({}) as Outcome;
  expect(checks).toMatchObject([{ key: "192.0.2.1", shadow: false, rule: { name: "small" } }, { shadow: true }]);
  expect(decisions).toMatchObject([
    { name: "small", remaining: 1 },
    { name: "large", remaining: 9 },
  ]);
});
