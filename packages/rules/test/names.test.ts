import { checkRules } from "@floodgate/core/rules";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRules, RulesError } from "../src/index.js";

/** Property names that every JavaScript object inherits. A careless lookup would find them. */
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
  ])("are lists or the objects that `rateLimit` takes; without them, any name is accepted: %o", (app) => {
    expect(parseRules(text, "rules", app).rules).toHaveLength(1);
  });

  it.each([[{ keys: ["usr"] }], [{ keys: { usr: user } }], [{ keys: {} }], [{ costs: { itms: user } }], [{ costs: [] }]])(
    "are the only names that rules may use: %o",
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
  ])("must be lists or objects: %o", (app, code, message) => {
    expect(() => parseRules(text, "rules", app as never)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    );
  });
});

describe("names that every JavaScript object inherits", () => {
  it("are accepted if the app defines them", () => {
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

  it.each([...inherited, "__proto__"])("are refused if the app does not define them: %s", (name) => {
    const errorOf = (options: object): string => {
      const text = JSON.stringify({ rules: [{ name: "a", limit: 1, window: "1m", ...options }] });
      try {
        parseRules(text, "rules", { keys: [], costs: [] });
      } catch (error) {
        if (error instanceof RulesError) return error.message;
        throw error;
      }
      return "nothing";
    };
    expect(errorOf({ key: name })).toMatch(/^rules:1:\d+: rules\[0\]: `key` must be .*, but was "\w+"/);
    expect(errorOf({ cost: name })).toMatch(/^rules:1:\d+: rules\[0\]: `cost` .*"\w+"/);
    expect(errorOf({ settle: name })).toMatch(/^rules:1:\d+: rules\[0\]: `settle` .*"\w+"/);
  });

  it("are unknown options like any other", () => {
    for (const option of inherited) {
      const text = `${option}: 1\nrules:\n  - { name: a, limit: 1, window: 1m, ${option}: 1, exempt: { ${option}: 1 } }\n`;
      expect(() => parseRules(text)).toThrow(
        new RegExp(`^rules:1:1: .*\`${option}\`.*\nrules:3:38: .*\`${option}\`.*\nrules:3:\\d+: .*\`${option}\``),
      );
    }
  });
});
