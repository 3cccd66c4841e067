import { checkRules } from "@floodgate/core/rules";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { runs } from "../../../test/runs.js";
import { parseRules } from "../src/index.js";
import { ruleSets } from "./arbitraries.js";

describe("rules", () => {
  it("are parsed from YAML and from JSON", () => {
    fc.assert(
      fc.property(ruleSets, (rules) => {
        fc.pre(checkRules(rules).length === 0);
        for (const text of [
          stringify(rules),
          stringify(rules, { collectionStyle: "flow" }),
          JSON.stringify(rules),
          JSON.stringify(rules, null, "\t"),
        ]) {
          expect(parseRules(text)).toEqual(rules);
        }
      }),
      runs(200),
    );
  });

  it("are parsed the same if they use anchors and aliases", () => {
    fc.assert(
      fc.property(ruleSets, (rules) => {
        fc.pre(checkRules(rules).length === 0);
        const twins = rules.rules.flatMap((rule, i) => [rule, { ...rule, name: `twin ${i}` }]);
        fc.pre(new Set(twins.map(({ name }) => name)).size === twins.length);
        // `stringify` writes an object that occurs twice as an anchor and an alias.
        expect(parseRules(stringify({ rules: twins }))).toEqual({ rules: twins });
      }),
      runs(100),
    );
  });
});

describe("YAML", () => {
  it("is read as YAML 1.2 with the core schema, so on, no and off are strings", () => {
    const { rules } = parseRules(
      "%YAML 1.1\n---\nrules: [{ name: on, key: [no, y], limit: 0x10, window: 1h, mode: enforce, settle: off }]",
    );
    expect(rules).toEqual([{ name: "on", key: ["no", "y"], limit: 16, window: "1h", mode: "enforce", settle: "off" }]);
  });

  it("supports `<<`: a map's own keys win, then the maps merged first", () => {
    const { rules } = parseRules(`
rules:
  - &base
    name: a
    limit: 100
    window: 1m
  - &strict { name: b, <<: *base, mode: shadow, limit: 5 }
  - <<: [*strict, *base]
    name: c
`);
    expect(rules.slice(1)).toEqual([
      { name: "b", limit: 5, window: "1m", mode: "shadow" },
      { name: "c", limit: 5, window: "1m", mode: "shadow" },
    ]);
  });

  it("may have a byte order mark, a $schema and Windows line ends", () => {
    const text = "\u{feff}# yaml-language-server: $schema=schema.json\r\nrules:\r\n  - name: a\r\n    limit: 1\r\n    window: 1s\r\n";
    expect(parseRules(text)).toEqual({ rules: [{ name: "a", limit: 1, window: "1s" }] });
    const json = { $schema: "./schema.json", rules: [{ name: "a", limit: 1, window: "1s" }] };
    expect(parseRules(JSON.stringify(json))).toEqual({ rules: json.rules });
  });

  it("reports a mistake in a merged value at its original position", () => {
    const text = "rules:\n  - &base { name: a, limit: 5, window: 1 m }\n  - { <<: *base, name: b }\n";
    expect(() => parseRules(text, "f")).toThrow(/^f:2:40: .*"1 m".*\nf:2:40: .*"1 m"/);
  });
});
