import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../../test/runs.js";
import { type Descriptor, entryValue } from "../../src/requests/descriptor.js";
import { DescriptorIndex } from "../../src/rules/descriptor-index.js";
import { compileDescriptorMatch } from "../../src/rules/descriptor-rule.js";
import { type CompiledMatch, compileMatch, type Match } from "../../src/rules/match.js";
import { MatchIndex } from "../../src/rules/match-index.js";

function descriptorOf(domain: string, ...entries: readonly (readonly [string, string])[]): Descriptor {
  return { domain, entries: entries.map(([key, value]) => ({ key, value })), hits: 1 };
}

function matches(match: Match, descriptor: Descriptor, keyed: readonly string[] = []): boolean {
  return new DescriptorIndex([{ match: compiledFor(match, keyed) }]).find(descriptor).length === 1;
}

function compiledFor(match: Match, keyed: readonly string[]): CompiledMatch {
  return compileMatch("test", match, (where, match) => compileDescriptorMatch(where, match, keyed));
}

const login = descriptorOf("edge", ["path", "/login"], ["remote_address", "203.0.113.9"], ["tier", "free"]);

describe("a rule matches a descriptor", () => {
  it.each<[string, Match]>([
    ["by its domain", { domain: "edge" }],
    ["by one of several domains", { domain: ["mesh", "edge"] }],
    ["by a pattern of domains", { domain: "e*e" }],
    ["by an entry", { descriptor: { path: "/login" } }],
    ["by a pattern of a value", { descriptor: { path: "/log*" } }],
    ["by an entry with any value", { descriptor: { remote_address: true } }],
    ["by one of several values", { descriptor: { tier: ["trial", "free"] } }],
    ["by a missing entry", { descriptor: { user: false } }],
    [
      "by all of these together",
      { domain: "edge", descriptor: { path: "/login", remote_address: true, tier: ["free", "trial"], user: false } },
    ],
  ])("%s", (_, match) => {
    expect(matches(match, login)).toBe(true);
  });

  it.each<[string, Match]>([
    ["another domain", { domain: "mesh" }],
    ["a domain in other case", { domain: "Edge" }],
    ["another value", { descriptor: { path: "/logout" } }],
    ["an entry that is missing", { descriptor: { user: true } }],
    ["an entry that must be missing", { descriptor: { tier: false } }],
    ["an entry whose key has other case", { descriptor: { Path: "/login" } }],
    ["one part of several", { domain: "edge", descriptor: { path: "/login", tier: "trial" } }],
  ])("but not if it asks for %s", (_, match) => {
    expect(matches(match, login)).toBe(false);
  });

  it("only if the descriptor has the entries that the rule counts by", () => {
    expect(matches({ domain: "edge" }, login, ["remote_address", "tier"])).toBe(true);
    expect(matches({ domain: "edge" }, login, ["remote_address", "user"])).toBe(false);
    expect(matches({ domain: "edge" }, descriptorOf("edge", ["user", ""]), ["user"])).toBe(true);
  });

  it("if one of several entries with the same key fits", () => {
    const twice = descriptorOf("edge", ["generic_key", "a"], ["generic_key", "b"]);
    expect(matches({ descriptor: { generic_key: "b" } }, twice)).toBe(true);
    expect(matches({ descriptor: { generic_key: "c" } }, twice)).toBe(false);
    expect(matches({ descriptor: { generic_key: false } }, twice)).toBe(false);
    expect(entryValue(twice, "generic_key")).toBe("a, b");
    expect(entryValue(twice, "other")).toBeUndefined();
  });

  it("whatever its entries are called", () => {
    const odd = descriptorOf("edge", ["__proto__", "x"], ["constructor", "y"], ["a b", "z"]);
    expect(matches({ descriptor: { constructor: "y", "a b": "z" } }, odd)).toBe(true);
    expect(matches(JSON.parse('{ "descriptor": { "__proto__": "x" } }') as Match, odd)).toBe(true);
    expect(matches({ descriptor: { toString: true } }, odd)).toBe(false);
  });
});

it.each<[object, RegExp, readonly (string | number)[]]>([
  [{ domain: 5 }, /`match\.domain` must be a string or a list of strings, but was given 5\. Write domain: "edge"/, ["domain"]],
  [{ domain: [] }, /but was given an empty array/, ["domain"]],
  [{ descriptor: { tier: ["a", 1] } }, /`match\.descriptor\.tier` must be .* true or false, but was given 1\./, ["descriptor", "tier", 1]],
  [{ descriptor: { tier: 1 } }, /Write descriptor: \{ "tier": "free" \}/, ["descriptor", "tier"]],
])("the error of %j says what is wrong, and where", (match, message, at) => {
  expect(() => compiledFor(match as Match, [])).toThrow(
    expect.objectContaining({ message: expect.stringMatching(message), at: ["match", ...at] }),
  );
});

const value = fc.constantFrom("a", "b", "ab", "");
const key = fc.constantFrom("k", "l", "m");
const test = fc.oneof(fc.boolean(), fc.constantFrom("a", "b", "a*", "*b", "*"), fc.uniqueArray(value, { minLength: 1, maxLength: 3 }));
const match = fc
  .record(
    { domain: fc.constantFrom("a", "b", "*", ["a", "b"], ["a", "a"], ["a", "x*"]), descriptor: fc.dictionary(key, test, { minKeys: 1 }) },
    { requiredKeys: [] },
  )
  .filter((match) => Object.keys(match).length > 0);

it("many rules together match exactly like each rule alone, in order", () => {
  const rules = fc.array(fc.tuple(match, fc.uniqueArray(key, { maxLength: 2 })), { maxLength: 20 });
  const entries = fc.array(fc.record({ key, value }), { maxLength: 4 });
  fc.assert(
    fc.property(rules, fc.constantFrom("a", "b", "x", ""), entries, (rules, domain, entries) => {
      const compiled = rules.flatMap(([match, keyed], place) => {
        try {
          return [{ match: compiledFor(match as Match, keyed), place }];
        } catch {
          // Counts by an entry that must be missing.
          return [];
        }
      });
      const descriptor = { domain, entries, hits: 1 };
      const alone = compiled.filter((rule) => new DescriptorIndex([rule]).find(descriptor).length > 0);
      expect(new DescriptorIndex(compiled).find(descriptor)).toEqual(alone);
    }),
    runs(300),
  );
});

it("a rule for HTTP requests matches no descriptor", () => {
  expect(matches({}, login)).toBe(false);
  expect(matches({ path: "/login" }, login)).toBe(false);
  expect(new DescriptorIndex([{ match: undefined }]).find(login)).toEqual([]);
  expect(
    new MatchIndex([{ match: compileMatch("test", { path: "/login" }) }]).find({
      method: "GET",
      path: [["login"]],
      header: () => undefined,
    }),
  ).toHaveLength(1);
});
