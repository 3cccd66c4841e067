import type { InstanceInfo, Overview, StoreInfo } from "../contract.js";
import type { Histogram } from "./latencies.js";
import type { Summary } from "./sketch.js";

/** What one process knows at one moment, without its history. Reports of several processes make one overview. */
export interface Report extends Pick<Overview, "rules" | "totals" | "sources"> {
  readonly instance: Omit<InstanceInfo, "self">;
  readonly requests: KeyReport;
  readonly rejections: KeyReport;
  readonly stores: readonly StoreReport[];
}

export interface KeyReport {
  readonly sinceMs: number;
  readonly summary: Summary;
}

/** A store, with its latencies in a form that can be merged. Stores of the same `id` in several processes hold the same kind of data. */
export interface StoreReport extends Omit<StoreInfo, "latency"> {
  readonly latencies: Histogram;
}
