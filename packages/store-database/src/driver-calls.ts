import { activeListener, msLeft, ServerClock, workEndsWithRequest } from "@floodgate/core/store";
import type { DatabaseDriver, DecideAgain, Loaded, Promised, Swap, Swapped } from "./driver.js";
import type { Step } from "./step.js";

/** Maximum number of merged calls in flight. With fewer, each call carries more steps, and the next call waits longer. */
const maxMerged = 4;

/** Maximum number of batches that begin together, if their calls are merged. */
const maxBatches = 256;

/** The same if each has calls of its own, and from how many calls in flight on the next wait. What expires before its call costs the database nothing. */
const maxSingle = 128;

/** How old the last reading of the database's clock may be. Clocks drift apart by less than a millisecond in this time. */
const learnEveryMs = 500;

/**
 * The calls of the driver. If it has `swapMany`, calls of one moment are one. On Workers each goes alone, because it must end with its own
 * request.
 */
export class DriverCalls {
  answeredMs: number = Number.NEGATIVE_INFINITY;
  roundTripMs = 0;
  readonly serverClock: ServerClock = new ServerClock();
  readonly merges: boolean;
  readonly load: (keys: readonly string[], steps: readonly Step[]) => Promise<Loaded>;
  /** With `alone`, nothing else is to share the call. */
  readonly swap: (swap: Swap & { readonly decideAgain: DecideAgain }, steps: readonly Step[], alone: boolean) => Promise<Swapped>;
  #learnedMs = Number.NEGATIVE_INFINITY;
  /** The steps of each call in flight. */
  readonly #inFlight = new Set<readonly Step[]>();

  constructor(driver: DatabaseDriver) {
    const { swapMany } = driver;
    this.merges = swapMany !== undefined && driver.shardOf === undefined && !workEndsWithRequest;
    const load = (keys: readonly string[], steps: readonly Step[]): Promise<Loaded> =>
      this.#call(steps, () => driver.load(keys, Date.now() + Math.max(...steps.map((step) => msLeft(step)))));
    const swap = ({ changes, valid, decideAgain }: Parameters<DriverCalls["swap"]>[0], steps: readonly Step[]): Promise<Swapped> =>
      this.#call(steps, () => driver.swap(changes, valid, decideAgain));
    if (swapMany === undefined || !this.merges) {
      this.load = load;
      this.swap = swap;
      return;
    }
    this.load = merged(async (questions, steps) => {
      const { nowMs, rows } = await load(questions.flat(), steps);
      let next = 0;
      return questions.map(({ length }) => {
        next += length;
        return { nowMs, rows: rows.slice(next - length, next) };
      });
    });
    const swapTogether = merged(async (swaps: readonly Parameters<typeof swap>[0][], steps) =>
      swaps.length === 1 ? [await swap(swaps[0] as (typeof swaps)[0], steps)] : this.#call(steps, () => swapMany.call(driver, swaps)),
    );
    this.swap = (question, steps, alone) => (alone ? swap(question, steps) : swapTogether(question, steps));
  }

  /** Whether new steps are to wait for the end of a call. A call counts until a step of it expires: it may never be answered. */
  get mustWait(): boolean {
    const most = this.merges ? maxMerged : maxSingle;
    if (this.#inFlight.size < most) return false;
    for (const steps of this.#inFlight) if (steps.some(({ settled }) => settled)) this.#inFlight.delete(steps);
    return this.#inFlight.size >= most;
  }

  /** How many batches may begin together. */
  get mostBatches(): number {
    return this.merges ? maxBatches : maxSingle;
  }

  isTimeKnown(steadyMs: number): boolean {
    return steadyMs - this.#learnedMs < learnEveryMs;
  }

  /** Calls the driver, learns its clock from the answer, and reports the round trip to observers. */
  async #call<T extends Loaded | Swapped | readonly Swapped[]>(steps: readonly Step[], ask: () => Promised<T>): Promise<T> {
    const sentMs = performance.now();
    let ok = false;
    this.#inFlight.add(steps);
    try {
      const answer = await ask();
      ok = true;
      const receivedMs = performance.now();
      const { nowMs } = ("rows" in answer ? answer : answer[0]) as Swapped;
      this.answeredMs = receivedMs;
      this.roundTripMs = receivedMs - sentMs;
      if (nowMs !== undefined) {
        this.serverClock.learn(nowMs, sentMs, receivedMs);
        this.#learnedMs = receivedMs;
      }
      return answer;
    } finally {
      this.#inFlight.delete(steps);
      activeListener()?.({ type: "round-trip", steps: steps.length, ms: performance.now() - sentMs, ok });
    }
  }
}

/** Asks all questions of one moment together. */
function merged<Q, A>(
  ask: (questions: readonly Q[], steps: readonly Step[]) => Promise<readonly A[]>,
): (question: Q, steps: readonly Step[]) => Promise<A> {
  let next: { readonly questions: Q[]; readonly steps: Step[]; readonly answers: Promise<readonly A[]> } | undefined;
  return async (question, steps) => {
    if (next === undefined) {
      const questions: Q[] = [];
      const all: Step[] = [];
      const answers = Promise.resolve().then(() => {
        next = undefined;
        return ask(questions, all);
      });
      next = { questions, steps: all, answers };
    }
    const place = next.questions.push(question) - 1;
    for (const step of steps) next.steps.push(step);
    return (await next.answers)[place] as A;
  };
}
