// biome-ignore-all assist/source/organizeImports: grouped by who needs it

// Sources of rules
export { fileRules } from "./file.js";
export { pullRules, pushRules, redisRules } from "./redis.js";
export { type LiveOptions, type LiveRules, liveRules } from "./live.js";
export type { RulesOrigin, RulesText } from "./follow.js";
export type { RulesRedis } from "./client.js";

// Rules as a text
export { parseRules } from "./parse.js";
export { describeProblem, type Path, RulesError, type RulesProblem } from "./problems.js";
export { rulesSchema } from "./json-schema.js";
