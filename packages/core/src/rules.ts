// For sources of rules, and for tools that look into rules, beside what `index.ts` exports.
// biome-ignore-all assist/source/organizeImports: grouped by subject

// Sources of rules
export { type AppNames, checkRules } from "./rules/validate.js";
export { compilePlans } from "./rules/plans.js";
export type { PlainRule } from "./rules/rule.js";
export type { Grant, Granted } from "./rules/plans.js";
export type { GrantChange, RuleSet, RuleSource, RuleUser } from "./rules/rule.js";
export type { AlgorithmDefinition } from "./algorithms/algorithm.js";
export { describePolicy, descriptions, type OptionDescription, type OptionDescriptions, policyText } from "./algorithms/descriptions.js";
export { algorithms, toPolicy } from "./algorithms/all.js";
export { formatDuration } from "./support/duration.js";
export { containEveryAddress } from "./requests/trusted-proxies.js";
export { listenerOf, tellAll } from "./events/listeners.js";
export type { DecisionResult, RequestEvent, RequestResult } from "./events/events.js";
export { isRejection, resultOf } from "./events/decision-events.js";
export type { RulesEvent, RulesRefusedEvent, RulesReloadedEvent } from "./events/events.js";

// What rules do with a request, beside a middleware
export { type Explanation, type Misfit, RuleExplainer, requestOfEvent, uncheckedRules } from "./rules/explain.js";
export {
  type Reason,
  isCounted,
  isUnchecked,
  reasonJson,
  reasonsOf,
  saysText,
  usedOf,
  verdictOf,
  waitText,
  whyNot,
} from "./rules/reasons.js";
export { type AskedRequest, askProcess } from "./middleware/ask-process.js";
export type { RequestContext } from "./requests/request-context.js";
export type { Ban } from "./rules/bans.js";
export type { Asked, CompiledRule, RuleCheck } from "./rules/compiled-rule.js";
export { statusList } from "./rules/cost.js";
export { isBuiltInKey, parseKeyName } from "./rules/key-source.js";
export { decodeKey, keyOfText, maskKey, missingKeyText } from "./limits/key.js";
export { ipKey } from "./support/ip.js";

// For Envoy's rate limit service
export { DescriptorIndex } from "./rules/descriptor-index.js";
export { recordUsage } from "./limits/settle.js";
export { type DescriptorRules, descriptorRules } from "./rules/descriptor-rule.js";

// What is in use in this process, for metrics and dashboards
export { type Inventory, type InventoryLimit, type InventoryStore, inventory } from "./middleware/inventory.js";
export { slotsHeld } from "./limits/slots.js";
export { type RuleWords, wordsOf } from "./rules/reasons.js";
export type { Refusal } from "./rules/rule.js";

// Support
export { checkOptions, didYouMean, flag, functionOrNothing, nearest, wholeNumber, wholeOf } from "./support/options.js";
export { invalidOption, wrongOption } from "./support/errors.js";
export { isPromise } from "./support/promises.js";
export { warnOnce } from "./support/warn.js";
