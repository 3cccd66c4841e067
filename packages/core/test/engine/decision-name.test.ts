import assert from "node:assert/strict";
import { fixedWindow } from "../../src/index.js";
import { describe, it } from "./app.js";

/** `decisionName`: where handlers find the decision. */
const policy = fixedWindow({ limit: 1, window: "1m" });
describe("decisionName", () => {
  for (const name of ["", "rate-limit", "a b", "1st", "__proto__", null, 1]) {
    it(`rejects ${JSON.stringify(name)}`, async (web) => {
      await assert.rejects(web.start({ policy, decisionName: name as never }), { code: "FLOODGATE_INVALID_OPTION" });
    });
  }
});
