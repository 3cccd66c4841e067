import type { Entry } from "./entry.js";
import type { Seen, Step, StepRow } from "./step.js";

/** A key in a batch: its row as it was seen, and as the batch leaves it. */
export class BatchRow implements StepRow {
  readonly key: string;
  readonly batch: Batch;
  seen!: Seen;
  entry!: Entry;

  constructor(key: string, batch: Batch) {
    this.key = key;
    this.batch = batch;
  }
}

/** Steps that share keys. They are decided together, in order, and written in one change. */
export class Batch {
  readonly steps: Step[] = [];
  /** In the order of their keys, once it begins: every process locks rows in this order, so of those that conflict, one goes on. */
  readonly rows: BatchRow[] = [];
  nowMs = 0;

  /** Whether there is anything to write. */
  get changed(): boolean {
    return this.rows.some(({ entry }) => entry.changed);
  }

  get open(): Step[] {
    return this.steps.filter(({ settled }) => !settled);
  }

  /** @param rows those of the keys that batches have. It adds those of the step. Not needed if the batch has this step alone. */
  add(step: Step, rows?: Map<string, BatchRow | undefined>): void {
    this.steps.push(step);
    step.rows = step.keys.map((key) => {
      const known = rows?.get(key);
      if (known !== undefined) return known;
      const row = new BatchRow(key, this);
      rows?.set(key, row);
      this.rows.push(row);
      return row;
    });
  }
}
