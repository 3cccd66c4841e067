import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../test/runs.js";
import { anyCharacter } from "../../conformance/test/characters.js";
import { parseRules, RulesError } from "../src/index.js";

const valid = readFileSync(join(__dirname, "../../../examples/rules/limits.yaml"), "utf8");

/** Texts of characters with a meaning in YAML. */
const yaml = fc.string({
  unit: fc.constantFrom(..."ab01:-,[]{}&*!|>'\"%@`#?~<= \n\t\u0000\ud800é", "rules:", "<<: ", "---\n"),
  maxLength: 80,
});

/** A valid file with a random edit. */
const mangled = fc.tuple(fc.nat(valid.length), fc.nat(20), fc.oneof(yaml, fc.string())).map(([at, removed, inserted]) => {
  return valid.slice(0, at) + inserted + valid.slice(at + removed);
});

test("any text is either parsed or refused with positions inside it", () => {
  fc.assert(
    fc.property(fc.oneof(yaml, mangled, fc.string({ unit: anyCharacter }), fc.json()), (text) => {
      try {
        expect(parseRules(text, "limits").rules.length).toBeGreaterThan(0);
      } catch (error) {
        if (!(error instanceof RulesError)) throw error;
        const lines = text.split(/\r\n|\r|\n/);
        expect(error.problems.length).toBeGreaterThan(0);
        for (const { line, column, message } of error.problems) {
          expect(line, message).toBeGreaterThanOrEqual(1);
          expect(line, message).toBeLessThanOrEqual(lines.length);
          expect(column, message).toBeGreaterThanOrEqual(1);
          expect(message).not.toMatch(/undefined|\[object|NaN/);
        }
      }
    }),
    runs(1000),
  );
});
