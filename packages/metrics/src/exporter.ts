import { checkOptions, wholeNumber } from "@floodgate/core/rules";

export interface Exporter {
  stop(): void;
  /** Called when the app starts it again while it runs. */
  startAgain?(): void;
}

/**
 * Runs at most one exporter for each target: a registry, or a provider. A second call for the same target adds nothing, so nothing is
 * counted twice. The exporter runs until each call has been stopped.
 * @returns a function that starts the exporter of a target unless it runs. That function returns one that stops this use of it.
 */
export function onePerTarget(): (target: object, start: () => Exporter) => () => void {
  const running = new WeakMap<object, { readonly exporter: Exporter; users: number }>();
  return (target, start) => {
    const known = running.get(target);
    known?.exporter.startAgain?.();
    const entry = known ?? { exporter: start(), users: 0 };
    running.set(target, entry);
    entry.users++;
    let isUsed = true;
    return () => {
      if (!isUsed) return;
      isUsed = false;
      if (--entry.users > 0) return;
      running.delete(target);
      entry.exporter.stop();
    };
  };
}

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
