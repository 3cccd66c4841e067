import { checkRules } from "@floodgate/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRules, RulesError } from "../src/index.js";

/** What every object of JavaScript has a property of, and so could be taken for something that is there. */
const inherited = ["constructor", "toString", "hasOwnProperty", "valueOf"];
const word = fc.constantFrom(...inherited);
const name = fc.constantFrom(...inherited, "__proto__");

describe("names that every object of JavaScript has", () => {
  it("are names like any other, where the app has them", () => {
    fc.assert(
      fc.property(name, name, name, word, word, (rule, key, cost, plan, header) => {
        const set = {
          rules: [
            {
              name: rule,
              key: [key, `header:${header}`],
              cost,
              settle: cost,
              limit: 1,
              window: "1m",
              match: { header: { [header]: true } },
              plans: { [plan]: { limit: 2 } },
            },
          ],
        };
        const app = { keys: [key], costs: [cost] };
        const parsed = parseRules(JSON.stringify(set), "rules", app);
        expect(parsed).toEqual(set);
        expect(checkRules(parsed, app)).toEqual([]);
        expect(Object.keys(Object.prototype)).toEqual([]);
      }),
    );
  });

  it.each([...inherited, "__proto__"])("name no key and no cost that the app has not: %s", (name) => {
    const said = (words: object): string => {
      const text = JSON.stringify({ rules: [{ name: "a", limit: 1, window: "1m", ...words }] });
      try {
        parseRules(text, "rules", { keys: [], costs: [] });
      } catch (error) {
        if (error instanceof RulesError) return error.message;
        throw error;
      }
      return "nothing";
    };
    expect(said({ key: name })).toMatch(/^rules:1:\d+: rules\[0\]: `key` must be .*, but was "\w+"/);
    expect(said({ cost: name })).toMatch(/^rules:1:\d+: rules\[0\]: `cost` .*"\w+"/);
    expect(said({ settle: name })).toMatch(/^rules:1:\d+: rules\[0\]: `settle` .*"\w+"/);
  });

  it("are unknown words like any other, where words of the rules stand", () => {
    for (const word of inherited) {
      const text = `${word}: 1\nrules:\n  - { name: a, limit: 1, window: 1m, ${word}: 1, exempt: { ${word}: 1 } }\n`;
      expect(() => parseRules(text)).toThrow(
        new RegExp(`^rules:1:1: .*\`${word}\`.*\nrules:3:38: .*\`${word}\`.*\nrules:3:\\d+: .*\`${word}\``),
      );
    }
  });
});
