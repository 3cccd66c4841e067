// biome-ignore-all assist/source/organizeImports: grouped by who needs it

// Live rules
export { fileRules } from "./file.js";
export { grantPlan, pullRules, pushRules, redisRules } from "./redis.js";
export { type LiveOptions, type LiveRules, liveRules } from "./live.js";
export type { RulesOrigin, RulesText } from "./origin.js";
export type { RulesRedis } from "./redis-client.js";

// Rules as a text
export { parseRules } from "./parse.js";
export { withGrant } from "./grant.js";
export { describeProblem, type Path, RulesError, type RulesProblem } from "./rules-error.js";
export { rulesSchema } from "./json-schema.js";

// Positions in a text, for other files that people write
export { readYaml, type YamlText } from "./yaml.js";
