import { expect, it } from "vitest";
import { FloodgateError } from "../../src/index.js";
import { compileRules } from "../../src/rules/compile.js";

it("a version with thousands of bad rules reports the first hundred mistakes and stops", () => {
  let looked = 0;
  const bad = Array.from({ length: 10_000 }, (_, i) => ({
    get limt() {
      return 1;
    },
    get name() {
      looked++;
      return `r${i}`;
    },
  }));
  const refusal = (): unknown => {
    try {
      return compileRules("rateLimit", bad as never, {} as never);
    } catch (error) {
      return error;
    }
  };
  const error = refusal();
  expect(error).toBeInstanceOf(FloodgateError);
  expect(((error as FloodgateError).cause as AggregateError).errors).toMatchObject(
    Array.from({ length: 100 }, (_, i) => ({ code: "FLOODGATE_UNKNOWN_OPTION", at: ["rules", i, "limt"] })),
  );
  expect(looked).toBeLessThanOrEqual(100);
});
