import fc from "fast-check";
import { expect, it } from "vitest";
import { maskKey } from "../../src/limits/key.js";

it.each([
  ["203.0.113.7", "203.0.113.x"],
  ["2001:db8:0:100::/56", "2001:db8:x"],
  ["user:42", "us…42"],
  ["42:7", "4…"],
  ["ann@example.com", "an…om"],
  ["bob", "b…"],
  ["42", "…"],
  ["", "…"],
  ["global", "global"],
  ["(203.0.113.7,user:42)", "(203.0.113.x, us…42)"],
  ["(a\\,bcdefg,h)", "(a,…fg, …)"],
  ["missing-key-ip:203.0.113.7", "missing-key-ip:203.0.113.x"],
  ["secret:0123456789abcdef", "secret:0123…"],
  ["\\#0123456789abcdef", "#0123…"],
  ["👍👍👍👍👍👍", "👍👍…👍👍"],
])("masks %j as %j", (key, shown) => {
  expect(maskKey(key)).toBe(shown);
});

it("never shows a whole part of more than two characters", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 3, maxLength: 40, unit: "grapheme" }), (key) => {
      fc.pre(key !== "global" && !/^[(\\]|^secret:|^missing-key-ip:/.test(key));
      expect(maskKey(key)).not.toContain(key);
    }),
  );
});
