import { inThisContext, Waiter } from "@floodgate/core/store";
import type { Version } from "./driver.js";
import type { Entry } from "./entry.js";
import { queueTimeout, timeout } from "./faults.js";

/** Reads and changes the entries of a step's keys, in their order. */
export type Work<T> = (entries: readonly Entry[], nowMs: number) => T;

/** A row as this process saw it last. */
export interface Seen {
  readonly version: Version | undefined;
  readonly entry: Entry;
  /** When the question was sent that this answers, by this process's monotonic clock. */
  readonly sentMs: number;
}

/** A row that a step decides on: as it was seen, and as it is left. */
export interface StepRow {
  readonly seen: Seen;
  readonly entry: Entry;
}

const nothing = (): void => undefined;

/** The queue that a step waits in. */
export interface StepQueue {
  /** When the database has answered last, by this process's monotonic clock. */
  readonly answeredMs: number;
  /** Starts the steps that wait. Called when a step has expired: its keys may be free. */
  startWaiting(): void;
}

/** One call of the store. */
export class Step<T = unknown> extends Waiter<T> {
  readonly keys: readonly string[];
  /** Those of its keys, once it is in a batch. */
  rows: readonly StepRow[] = [];
  /** Whether a change with it has been sent and not answered. */
  inFlight = false;
  /** How often a change with it was not written. */
  tries = 0;
  /** Ends `turn`. */
  wake: () => void = nothing;
  readonly #work: Work<T>;
  readonly #timeoutMs: number;
  readonly #queue: StepQueue;
  /** Runs work in the async context of the call, where tracers attach its spans. */
  readonly inContext: (work: () => void) => void = inThisContext((work) => work());
  /** Of the last run. */
  result: T | undefined = undefined;

  constructor(keys: readonly string[], work: Work<T>, timeoutMs: number, queue: StepQueue) {
    super(timeoutMs);
    this.keys = keys;
    this.#work = work;
    this.#timeoutMs = timeoutMs;
    this.#queue = queue;
  }

  /** Resolves when its keys may be free. */
  turn(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }

  run(nowMs: number): void {
    this.result = this.#work(
      this.rows.map(({ entry }) => entry),
      nowMs,
    );
  }

  expire(): void {
    // A database that was silent for half of that time may be down, or restarting.
    const isAlive = !this.inFlight && this.#queue.answeredMs > this.askedMs + this.#timeoutMs / 2;
    this.fail(isAlive ? queueTimeout(this.#timeoutMs) : timeout(this.#timeoutMs));
    this.#queue.startWaiting();
  }
}
