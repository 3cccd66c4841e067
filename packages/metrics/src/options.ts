import { checkOptions, wholeNumber } from "@floodgate/core/rules";

/** Options of both exporters. */
export interface MetricsOptions {
  /**
   * How many rules are told apart. All others are measured together as the rule `other`, and a line on the console says so once.
   * Default 500.
   */
  maxRules?: number;
}

/** @throws FloodgateError if an option is unknown or invalid. */
export function maxRulesOf(where: string, options: MetricsOptions, more: readonly string[], example: string): number {
  checkOptions(where, options, ["maxRules", ...more], example);
  return options.maxRules === undefined ? 500 : wholeNumber(where, "maxRules", options.maxRules, 1, 500);
}
