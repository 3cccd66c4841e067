import { checkOptions, wholeNumber } from "@floodgate/core/rules";

export interface Running {
  stop(): void;
}

/**
 * Runs at most one exporter for each target: a registry, or a provider. A second call for the same target adds nothing, so nothing is
 * counted twice. The exporter runs until each call has been stopped.
 */
export class OnePerTarget<Exporter extends Running> {
  readonly #running = new WeakMap<object, { readonly exporter: Exporter; users: number }>();

  /**
   * @param start starts the exporter, unless one runs.
   * @param again is called with the exporter that runs.
   * @returns a function that stops this call's use of it.
   */
  use(target: object, start: () => Exporter, again: (exporter: Exporter) => void = () => undefined): () => void {
    let entry = this.#running.get(target);
    if (entry === undefined) {
      entry = { exporter: start(), users: 0 };
      this.#running.set(target, entry);
    } else {
      again(entry.exporter);
    }
    entry.users++;
    return once(() => this.#leave(target));
  }

  #leave(target: object): void {
    const entry = this.#running.get(target);
    if (entry === undefined || --entry.users > 0) return;
    this.#running.delete(target);
    entry.exporter.stop();
  }
}

function once(run: () => void): () => void {
  let ran = false;
  return () => {
    if (ran) return;
    ran = true;
    run();
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
