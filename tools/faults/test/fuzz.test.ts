import { describe, it } from "vitest";
import { fuzzed } from "../src/fuzz/fuzz.js";

/** In all. */
const count = 40_000;

describe("forty thousand hostile things bring no crash, nothing that is no number, and no more memory than there may be", () => {
  it.each(Object.entries(fuzzed))("%s", { timeout: 240_000 }, async (_, { share, run }) => {
    await run(Math.round(share * count));
  });
});
