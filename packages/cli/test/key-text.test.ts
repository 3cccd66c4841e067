import type { Key } from "@floodgate/core";
import { encodeKey } from "@floodgate/core/store";
import fc from "fast-check";
import { expect, it, test } from "vitest";
import { keyOf } from "../src/key-text.js";

const text = fc.string({ unit: fc.constantFrom("a", "#", "(", ")", ",", "\\", "secret:", "missing-key-ip:"), maxLength: 6 });
const { key } = fc.letrec<{ key: unknown }>((tie) => ({
  key: fc.oneof({ maxDepth: 2 }, text, fc.array(tie("key"), { minLength: 1, maxLength: 3 })),
}));

test("a key is read as it is printed", () => {
  fc.assert(
    fc.property(
      // A key or a part of more than 200 characters is printed as its hash.
      key.filter((key) => !/\\#[\da-f]{64}/.test(encodeKey(key as Key))),
      (key) => {
        expect(keyOf(encodeKey(key as Key))).toEqual(key);
      },
    ),
  );
});

it.each(["ann", "(ann", "a,b", "ann)", "\\ann", "CORP\\ann", ""])("is the text that it is where it is printed of no tuple: %j", (text) => {
  expect(keyOf(text)).toBe(text);
});
