import { describe, it } from "vitest";
import { fuzzed } from "../src/fuzz/fuzz.js";

/** The total of all kinds. */
const count = 20_000;

describe("twenty thousand hostile inputs cause no crash, no invalid number and no unbounded memory", () => {
  it.each(Object.entries(fuzzed))("%s", { timeout: 240_000 }, async (_, { share, run }) => {
    await run(Math.round(share * count));
  });
});
