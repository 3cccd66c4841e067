import { checkRules } from "@floodgate/core/rules";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRules, RulesError } from "../src/index.js";

/** What every object of JavaScript has a property of, and so could be taken for something that is there. */
const inherited = ["constructor", "toString", "hasOwnProperty", "valueOf"];
const word = fc.constantFrom(...inherited);
const name = fc.constantFrom(...inherited, "__proto__");

describe("the names of an app", () => {
  const text = "rules: [{ name: a, limit: 1, window: 1m, key: user, cost: items }]";
  const user = (): string => "ann";

  it.each([
    [{ keys: ["user"], costs: ["items"] }],
    [{ keys: { user }, costs: { items: () => 1 } }],
    [{ keys: Object.assign(Object.create(null), { user }) }],
    [{ costs: ["items"] }],
    [{}],
  ])("are lists, or the objects that `rateLimit` takes; any will do where they are not said: %o", (app) => {
    expect(parseRules(text, "rules", app).rules).toHaveLength(1);
  });

  it.each([[{ keys: ["usr"] }], [{ keys: { usr: user } }], [{ keys: {} }], [{ costs: { itms: user } }], [{ costs: [] }]])(
    "are all that there are where they are said: %o",
    (app) => {
      expect(() => parseRules(text, "rules", app)).toThrow(RulesError);
    },
  );

  it.each([
    [null, "FLOODGATE_INVALID_OPTION", "`app` takes an object of options, but was given null. Write { keys: "],
    [["user"], "FLOODGATE_INVALID_OPTION", "`app` takes an object of options, but was given an array of 1."],
    [{ keyz: ["user"] }, "FLOODGATE_UNKNOWN_OPTION", "`app` has no option `keyz`. Did you mean `keys`?"],
    [{ keys: "user" }, "FLOODGATE_INVALID_OPTION", "`app`: `keys` must be a list of names, or an object with a property for each"],
    [{ keys: new Set(["user"]) }, "FLOODGATE_INVALID_OPTION", 'Write keys: ["user"].'],
    [{ keys: user }, "FLOODGATE_INVALID_OPTION", "but was the function user."],
    [{ costs: ["items", 1] }, "FLOODGATE_INVALID_OPTION", 'Write costs: ["items"].'],
  ])("are nothing else: %o", (app, code, message) => {
    expect(() => parseRules(text, "rules", app as never)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    );
  });
});

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
