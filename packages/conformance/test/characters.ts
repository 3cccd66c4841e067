import fc from "fast-check";

/** Surrogates are no characters. */
const [firstSurrogate, surrogates] = [0xd800, 0x800];

/**
 * Any character: `fc.string({ unit: anyCharacter })`. The unit "binary" of fast-check makes the same strings, but first builds a map of all
 * 1.1 million characters, which takes longer than most tests.
 */
export const anyCharacter: fc.Arbitrary<string> = fc.nat(0x10ffff - surrogates).map(
  (n) => String.fromCodePoint(n < firstSurrogate ? n : n + surrogates),
  (text) => {
    const code = typeof text === "string" ? text.codePointAt(0) : undefined;
    if (code === undefined || text !== String.fromCodePoint(code)) throw new Error("This is not one character.");
    return code < firstSurrogate ? code : code - surrogates;
  },
);
