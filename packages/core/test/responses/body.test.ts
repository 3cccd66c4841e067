import fc from "fast-check";
import { expect, test } from "vitest";
import { fixedWindow } from "../../src/index.js";
import { quotaExceeded } from "../../src/responses/outcome.js";
import { createLimit } from "../../src/store.js";

const anyName = fc.stringMatching(/^[\x20-\x7e]{1,40}$/);

test("the body of a 429 is JSON with the names of the exceeded limits, whatever they are called", () => {
  const limit = createLimit("a", fixedWindow({ limit: 1, window: "1m" }));
  const decision = limit.algorithm.decide(limit, new Float64Array(2), 0, 0, 2, true);
  fc.assert(
    fc.property(fc.array(anyName), fc.option(fc.nat(), { nil: undefined }), fc.boolean(), (names, retryAfter, isKeyless) => {
      const { text, contentType } = quotaExceeded(names, isKeyless ? undefined : decision, retryAfter);
      const problem = JSON.parse(text);
      expect(contentType).toBe("application/problem+json");
      expect(problem).toMatchObject({ title: "Quota exceeded", status: 429, "violated-policies": names });
      expect(problem["retry-after"]).toBe(retryAfter);
      expect(text).toBe(JSON.stringify(problem));
    }),
  );
});
