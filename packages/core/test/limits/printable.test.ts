import * as fc from "fast-check";
import { expect, it, vi } from "vitest";
import { anyCharacter } from "../../../conformance/test/characters.js";
import { FloodgateError } from "../../src/support/errors.js";
import { warn } from "../../src/support/warn.js";

const text = fc.string({
  unit: fc.oneof(
    fc.constantFrom("\u001b", "\u0007", "\r", "\u009b", "\u202e", "\u2066", "\ud800", "\n", "a"),
    fc.string({ unit: anyCharacter, maxLength: 1 }),
  ),
});
const isPrintable = (shown: string): boolean => !/[^\n\t\P{C}]/u.test(shown);

it("no error or warning contains control characters, whatever text it quotes", () => {
  const told: string[] = [];
  const console = vi.spyOn(globalThis.console, "warn").mockImplementation((line: string) => void told.push(line));
  fc.assert(
    fc.property(text, (foreign) => {
      warn("FLOODGATE_TEST", foreign);
      expect(
        [new FloodgateError("FLOODGATE_STORE_FAULT", `It said: ${foreign}`).message, told.at(-1)].every((shown) =>
          isPrintable(shown as string),
        ),
      ).toBe(true);
    }),
  );
  console.mockRestore();
  expect(new FloodgateError("FLOODGATE_STORE_FAULT", "\u001b[31mred\nnext").message).toBe("\\u{1b}[31mred\nnext");
});
