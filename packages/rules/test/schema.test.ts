import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checkRules, descriptions, type OptionDescription } from "@floodgate/core/rules";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.js";
import { schemaErrors } from "../src/check-schema.js";
import { parseRules, RulesError, rulesSchema } from "../src/index.js";
import { readYaml } from "../src/yaml.js";
import { ruleSets } from "./arbitraries.js";

const folder = join(__dirname, "broken");
const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(rulesSchema);

describe("the JSON Schema", () => {
  it("equals the published schema.json (else run `npm run schema` in packages/rules)", () => {
    const published = readFileSync(join(__dirname, "..", "schema.json"), "utf8");
    expect(JSON.parse(published)).toEqual(rulesSchema);
  });

  it("accepts all valid rules", () => {
    fc.assert(
      fc.property(ruleSets, (rules) => {
        fc.pre(checkRules(rules).length === 0);
        expect(validate(JSON.parse(JSON.stringify(rules))), JSON.stringify(validate.errors)).toBe(true);
      }),
      runs(200),
    );
  });

  const read = (file: string) => readYaml(readFileSync(join(folder, file), "utf8"));
  const wrongTypes = readdirSync(folder).filter((file) => {
    if (!file.endsWith(".yaml")) return false;
    const { value, problems } = read(file);
    return problems.length === 0 && schemaErrors(value).length > 0;
  });

  it("refuses every file of test/broken with the wrong types", () => {
    expect(wrongTypes.length).toBeGreaterThan(20);
  });

  it.each(wrongTypes)("refuses wrong types: %s", (file) => {
    expect(validate(read(file).value)).toBe(false);
  });

  it.each([
    ["no limit", "name: a"],
    ["a limit without its window", "name: a, limit: 1"],
    ["a window without its limit", "name: a, window: 1m"],
    ["a limit beside a policy", "name: a, limit: 1, window: 1m, policy: { algorithm: gcra, limit: 1, window: 1m }"],
    ["a window beside a policy", "name: a, window: 1m, policy: { algorithm: gcra, limit: 1, window: 1m }"],
    ["a window of 0", "name: a, limit: 1, window: 0s"],
    ["an empty key name", "name: a, limit: 1, window: 1m, key: ''"],
    ["an empty name in a list of keys", "name: a, limit: 1, window: 1m, key: [ip, '']"],
    ["an empty cost name", "name: a, limit: 1, window: 1m, cost: ''"],
    ["an empty settle name", "name: a, limit: 1, window: 1m, settle: ''"],
  ])("refuses what parseRules refuses: %s", (_, rule) => {
    const text = `rules: [{ ${rule} }]`;
    expect(() => parseRules(text)).toThrow(RulesError);
    expect(validate(readYaml(text).value)).toBe(false);
  });

  it.each(Object.entries(descriptions))("accepts %s as its options are described, and plans with its numbers", (algorithm, { options }) => {
    const described = Object.entries<OptionDescription>(options);
    const written = (list: typeof described) => list.map(([option, { example }]) => `${option}: ${example}`).join(", ");
    const required = described.filter(([, { optional }]) => optional !== true);
    const numbers = described.filter(([, { type }]) => type === "whole number" || type === "duration");
    for (const list of [required, described]) {
      const text = `rules: [{ name: a, policy: { algorithm: ${algorithm}, ${written(list)} }, plans: { pro: { ${written(numbers)} } } }]`;
      expect(() => parseRules(text)).not.toThrow();
      expect(validate(readYaml(text).value), JSON.stringify(validate.errors)).toBe(true);
    }
  });

  it("describes every option", () => {
    const undescribed: string[] = [];
    const look = (schema: unknown, at: string): void => {
      if (typeof schema !== "object" || schema === null) return;
      const { properties = {} } = schema as { properties?: Record<string, { description?: string } | boolean> };
      for (const [option, inner] of Object.entries(properties)) {
        if (typeof inner === "object" && inner.description === undefined && !("not" in inner)) undescribed.push(`${at}.${option}`);
      }
      for (const [part, inner] of Object.entries(schema)) look(inner, `${at}.${part}`);
    };
    look(rulesSchema, "");
    expect(undescribed).toEqual([]);
  });
});
