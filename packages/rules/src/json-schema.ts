import { z } from "zod";
import { rulesFile } from "./schema.js";

/** The JSON Schema (draft 2020-12) of a rules file: with it editors complete, explain and check. Also in `schema.json`. */
export const rulesSchema: Readonly<Record<string, unknown>> = z.toJSONSchema(rulesFile, {
  target: "draft-2020-12",
  // A plan without an algorithm has the rule's own.
  unrepresentable: () => ({ not: {} }),
});
