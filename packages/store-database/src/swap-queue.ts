import { addWaiter, afterTurn, type Clock, msLeft, reasonOf, warnOnce, workEndsWithRequest } from "@floodgate/core/store";
import { LRUCache } from "lru-cache";
import { Batch, type BatchRow } from "./batch.js";
import type { Change, DatabaseDriver, Loaded } from "./driver.js";
import { DriverCalls } from "./driver-calls.js";
import { Entry } from "./entry.js";
import { fault } from "./faults.js";
import { type Seen, Step, type StepQueue, type Work } from "./step.js";
import { keysOf } from "./table.js";

/** Maximum number of steps decided together. */
const maxSteps = 256;
/** Maximum size of what is remembered, in cells of 8 bytes: 100 MB with the objects and keys, in which it is about 120,000 keys of one window each. */
const maxCells = 4_000_000;
/** How often a process deletes rows that have ended, and how many at once. */
const sweepEveryMs = 1000;
const sweptAtOnce = 500;
/** So many sweeps that fail in a row are told of. */
const toldSweeps = 5;
/** The longest pause after a change that was not written. */
const longestPauseMs = 16;

/**
 * Decides steps on what this process remembers of the rows, and writes the result if the rows are still so. Otherwise the database answers
 * what it has, and the same steps are decided on that. Only one change of a key is in flight at a time; steps on it wait, and go together.
 */
export class SwapQueue implements StepQueue {
  readonly #driver: DatabaseDriver;
  readonly #calls: DriverCalls;
  readonly #clock: Clock | undefined;
  readonly #seen = new LRUCache<string, Seen>({ maxSize: maxCells, sizeCalculation: ({ entry }) => entry.size });
  #waiting: Step[] = [];
  /** The batch at work on each key. */
  readonly #busy = new Map<string, Batch>();
  #scheduled = false;
  #sweptMs: number = performance.now();
  /** Sweeps in a row that failed. */
  #failedSweeps = 0;

  constructor(driver: DatabaseDriver, clock: Clock | undefined) {
    this.#driver = driver;
    this.#calls = new DriverCalls(driver);
    this.#clock = clock;
  }

  get answeredMs(): number {
    return this.#calls.answeredMs;
  }

  ask<T>(keys: readonly string[], work: Work<T>, timeoutMs: number): Promise<T> {
    const step = new Step(keys, work, timeoutMs, this);
    this.#waiting.push(step as Step);
    addWaiter(step);
    if (workEndsWithRequest) this.#takeTurns(step as Step).catch((error) => step.fail(fault(error)));
    else this.#schedule();
    return step.answer;
  }

  /** On Workers, a step works in its own request, because any other may be over first. It takes along the steps that share its keys. */
  async #takeTurns(step: Step): Promise<void> {
    await undefined;
    while (!step.settled) {
      const isFree = !step.keys.some((key) => this.#isBusy(key));
      for (const batch of isFree ? this.#nextBatches(step) : []) {
        const answers = batch.steps.map(({ answer }) => answer);
        this.#keepAlive(Promise.race([this.#work(batch, true), Promise.allSettled(answers)]));
      }
      await step.turn();
    }
  }

  #keepAlive(work: Promise<unknown>): void {
    this.#driver.waitUntil?.(work);
  }

  /**
   * What this process knows of the keys of checks without asking, if it has seen all of them in the last `maxAgeMs`.
   * `slackMs`: how much later it may be when a question that is sent now arrives.
   */
  recent(
    checks: readonly { readonly key: string }[],
    maxAgeMs: number,
  ): { entries: readonly Entry[]; nowMs: number; slackMs: number } | undefined {
    const steadyMs = performance.now();
    const entries: Entry[] = [];
    for (const { key } of checks) {
      const seen = this.#seen.peek(key);
      if (seen === undefined || steadyMs - seen.sentMs > maxAgeMs) return undefined;
      entries.push(seen.entry);
    }
    // The server's clock may be up to a round trip ahead of its estimate, and a question takes one more.
    const slackMs = this.#clock === undefined ? Math.ceil(2 * this.#calls.roundTripMs) + 2 : 0;
    return { entries, nowMs: this.#nowMs(steadyMs), slackMs };
  }

  /** A time that the server's clock has reached: decisions of several processes then agree on it. */
  #nowMs(steadyMs: number): number {
    return this.#clock === undefined ? this.#calls.serverClock.notAfterMs(steadyMs) : this.#clock();
  }

  /** Starts after the current turn, so that all steps of one turn go together. The end of a call schedules what waits for it. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    afterTurn(() => {
      this.#scheduled = false;
      if (this.#calls.mustWait) return;
      const batches = this.#nextBatches();
      for (const batch of batches) (batch.steps[0] as Step).inContext(() => void this.#work(batch, batches.length === 1));
    });
  }

  /** The steps whose keys are free, in order. A step also waits if an earlier one waits for one of its keys. With `own`, only its batch. */
  #nextBatches(own?: Step): readonly Batch[] {
    const [first] = this.#waiting;
    if (first !== undefined && this.#waiting.length === 1 && !first.keys.some((key) => this.#isBusy(key))) {
      this.#waiting = [];
      if (isOver(first)) return [];
      const batch = new Batch();
      batch.add(first);
      return this.#markBusy([batch]);
    }
    const waiting: Step[] = [];
    const batches = new Set<Batch>();
    /** The row of each key; undefined if a step waits for it. */
    const taken = new Map<string, BatchRow | undefined>();
    // On Workers each step works in its own request, so none of them begins here for others.
    const most = own === undefined ? this.#calls.mostBatches : Number.POSITIVE_INFINITY;
    for (const step of this.#waiting) {
      if (isOver(step)) continue;
      const others = new Set<Batch | undefined>();
      for (const key of step.keys) if (taken.has(key) || this.#isBusy(key)) others.add(taken.get(key)?.batch);
      const [other] = others;
      const isBlocked =
        others.size === 0 ? batches.size === most : others.size > 1 || other === undefined || this.#isFull(other, step, taken);
      if (isBlocked) {
        waiting.push(step);
        for (const key of step.keys) taken.set(key, undefined);
        continue;
      }
      const batch = other ?? new Batch();
      batches.add(batch);
      batch.add(step, taken);
    }
    const next = [...batches].filter(({ steps }) => own === undefined || steps.includes(own));
    for (const batch of next) batches.delete(batch);
    this.#waiting = [...[...batches].flatMap(({ steps }) => steps), ...waiting];
    return this.#markBusy(next);
  }

  /** Marks the keys of batches as busy. */
  #markBusy(batches: readonly Batch[]): readonly Batch[] {
    for (const batch of batches) {
      if (batch.rows.length > 1) batch.rows.sort((one, other) => (one.key < other.key ? -1 : 1));
      for (const { key } of batch.rows) this.#busy.set(key, batch);
    }
    // A batch whose request has ended stays until its key is asked for again, or until it is the oldest.
    const [oldest] = this.#busy.keys();
    if (oldest !== undefined && !this.#isBusy(oldest)) this.#busy.delete(oldest);
    return batches;
  }

  #isFull({ steps, rows }: Batch, { keys }: Step, taken: ReadonlyMap<string, unknown>): boolean {
    const added = keys.filter((key) => !taken.has(key)).length;
    return steps.length >= maxSteps || rows.length + added > (this.#driver.maxRows ?? Number.POSITIVE_INFINITY);
  }

  /** A batch ends with its last step: the database may never answer it. */
  #isBusy(key: string): boolean {
    return this.#busy.get(key)?.steps.some((step) => !isOver(step)) === true;
  }

  async #work(batch: Batch, alone: boolean): Promise<void> {
    try {
      await this.#attempt(batch, alone);
    } catch (error) {
      // Whether it was written is unknown.
      for (const { key } of batch.rows) this.#seen.delete(key);
      const reason = fault(error);
      for (const step of batch.steps) step.fail(reason);
    }
    for (const { key } of batch.rows) if (this.#busy.get(key) === batch) this.#busy.delete(key);
    const { open } = batch;
    if (open.length > 0) this.#waiting = [...open, ...this.#waiting];
    this.startWaiting();
  }

  /** Starts what waits, after a batch and when a step has expired, because its keys may be free: a client that has lost its connection may never answer. */
  startWaiting(): void {
    if (workEndsWithRequest) for (const step of this.#waiting) step.wake();
    else if (this.#waiting.length > 0) this.#schedule();
  }

  /** Decides and writes once. Steps that are not settled then were overtaken by another process, and are tried again. */
  async #attempt(batch: Batch, alone: boolean): Promise<void> {
    const { rows } = batch;
    for (const row of rows) row.seen = this.#seen.get(row.key) as Seen;
    const unknown = rows.filter(({ seen }) => seen === undefined);
    if (unknown.length > 0 || !this.#calls.serverClock.isKnown) await this.#load(batch, unknown.length > 0 ? unknown : rows);
    this.#decide(batch);
    if (!batch.changed) {
      finishFresh(batch);
      if (batch.open.length === 0) return;
      await this.#load(batch, rows);
      this.#decide(batch);
    }
    if (batch.changed) await this.#swap(batch, alone);
    else finishFresh(batch);
  }

  /** Decides the steps on copies of the rows. */
  #decide(batch: Batch): void {
    for (const row of batch.rows) row.entry = row.seen.entry.copy();
    batch.nowMs = this.#clock === undefined ? Math.max(batch.nowMs, this.#nowMs(performance.now())) : this.#clock();
    for (const step of batch.steps) if (!step.settled) step.run(batch.nowMs);
  }

  /** Reads rows, and the server's time. */
  async #load(batch: Batch, rows: readonly BatchRow[]): Promise<void> {
    const sentMs = performance.now();
    this.#remember(batch, rows, await this.#calls.load(keysOf(rows), batch.open), sentMs);
  }

  async #swap(batch: Batch, alone: boolean): Promise<void> {
    const sentMs = performance.now();
    const { rows, open } = batch;
    const changesOf = (): Change[] =>
      rows.map(({ key, seen: { version: was }, entry }): Change => {
        // A row that is not there yet is written even if it stays empty, so that its absence is compared too.
        return entry.changed || was === undefined ? { key, was, ...entry.write(batch.nowMs) } : { key, was, value: undefined, lifeMs: 0 };
      });
    const decideAgain = (loaded: Loaded): Change[] => {
      this.#remember(batch, rows, loaded, sentMs);
      this.#decide(batch);
      return changesOf();
    };
    let leftMs = Number.POSITIVE_INFINITY;
    for (const step of open) {
      leftMs = Math.min(leftMs, msLeft(step, sentMs));
      step.inFlight = true;
    }
    const valid = {
      fromMs: this.#clock === undefined ? batch.nowMs : 0,
      untilMs: this.#calls.serverClock.notAfterMs(sentMs + leftMs),
      isTimeKnown: this.#calls.isTimeKnown(sentMs),
    };
    const swapped = await this.#calls.swap({ changes: changesOf(), valid, decideAgain }, open, alone);
    for (const step of open) step.inFlight = false;
    if (swapped.done) {
      for (const [i, { key, entry }] of rows.entries()) {
        entry.changed = false;
        this.#seen.set(key, { version: swapped.rows[i]?.version, entry, sentMs });
      }
      for (const step of open) step.finish(step.result);
      this.#sweep();
      return;
    }
    const { nowMs = valid.fromMs } = swapped;
    const overtaken = this.#remember(batch, rows, { ...swapped, nowMs }, sentMs);
    const tries = Math.max(...open.map((step) => ++step.tries));
    // The first time, it is tried at once on what is there now, or with the database's clock if that was not where it was expected. Else another
    // change has locked a row.
    if (tries === 1 && (overtaken || nowMs < valid.fromMs || nowMs > valid.untilMs)) return;
    if (!workEndsWithRequest) this.#schedule();
    await new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(2 ** tries, longestPauseMs)));
  }

  /** Remembers rows, and the server's time. Returns whether any row is another than before. */
  #remember(batch: Batch, rows: readonly BatchRow[], loaded: Loaded, sentMs: number): boolean {
    let overtaken = false;
    for (const [i, row] of rows.entries()) {
      const { version, value } = loaded.rows[i] ?? {};
      const known: Seen | undefined = row.seen;
      const isSame = known !== undefined && known.version === version;
      row.seen = { version, entry: isSame ? known.entry : Entry.read(value), sentMs };
      this.#seen.set(row.key, row.seen);
      overtaken ||= !isSame;
    }
    batch.nowMs = loaded.nowMs;
    return overtaken;
  }

  #sweep(): void {
    const nowMs = performance.now();
    if (this.#driver.sweep === undefined || nowMs - this.#sweptMs < sweepEveryMs) return;
    this.#sweptMs = nowMs;
    const done = (): void => {
      this.#failedSweeps = 0;
    };
    // Rows that have ended decide nothing, so one failure needs no handling: the next sweep deletes them.
    const failed = (error: unknown): void => {
      if (++this.#failedSweeps < toldSweeps) return;
      warnOnce(
        "FLOODGATE_SWEEP_FAILED",
        `The database store cannot delete the rows that have ended, so its table grows. Allow its user DELETE, for example. The last fault: ${reasonOf(error).why}`,
      );
    };
    this.#keepAlive(Promise.resolve(this.#driver.sweep(sweptAtOnce)).then(done, failed));
  }
}

/** Settles the steps that were made before all their rows were read. Others must not be decided on rows that may be older. */
function finishFresh({ steps }: Batch): void {
  for (const step of steps) if (step.rows.every(({ seen }) => seen.sentMs >= step.askedMs)) step.finish(step.result);
}

/** Whether nobody waits for a step. On Workers, a step whose request has ended never settles. */
function isOver(step: Step): boolean {
  return step.settled || (workEndsWithRequest && msLeft(step) <= 0);
}
