import { type Clock, Deadlines } from "@floodgate/core";
import { Batch } from "./batch.js";
import type { RedisClient } from "./clients/client.js";
import { fault } from "./faults.js";
import { Reply } from "./reply.js";
import type { Step } from "./steps.js";

export interface LaneOptions {
  readonly clock: Clock | undefined;
  /** Whether the states of rejected requests shall be handed over. */
  readonly wantsState: boolean;
}

/** How many rounds may be under way at once: while Redis decides one, the next is written and the last is read. */
const mostRounds = 2;
/** How many checks travel in one round, so that Redis is held for a fraction of a millisecond. */
const mostChecks = 64;
/** How often a client that is not ready is asked whether it is. */
const pollMs = 5;

/**
 * The way to one server. Steps that wait at the same moment travel together, in order; what comes meanwhile waits for the next
 * round. A step that nobody waits for any more is not sent; one that was sent charges nothing after its deadline.
 */
export class Lane {
  readonly #client: RedisClient;
  readonly #options: LaneOptions;
  #waiting: Step[] = [];
  /** The rounds that were sent, and when the last of their steps is given up. */
  readonly #underWay = new Map<Step[], number>();
  #scheduled = false;
  readonly #deadlines = new Deadlines();
  /** The server's clock less this process's steady one, as far as is known; undefined before the first answer and after a fault. */
  #aheadMs: number | undefined;

  constructor(client: RedisClient, options: LaneOptions) {
    this.#client = client;
    this.#options = options;
  }

  add(step: Step): void {
    // Behind a silent server nothing is sent, and so nothing else clears away those who have given up.
    if (this.#waiting[0]?.settled === true) this.#clear();
    if (this.#room() <= 0) this.#abandon(step.askedMs);
    this.#waiting.push(step);
    this.#deadlines.add(step);
    this.#schedule();
  }

  /** Once all that runs now has run, so that what is asked in one turn travels in one round. */
  #schedule(): void {
    if (this.#scheduled || this.#room() <= 0) return;
    this.#scheduled = true;
    process.nextTick(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  /** How many rounds may start now. The first finds out what time it is at the server, and those after it would be too late with it. */
  #room(): number {
    return (this.#aheadMs === undefined ? 1 : mostRounds) - this.#underWay.size;
  }

  /**
   * Rounds that nobody waits for any more hold up no others: a library may have forgotten them when a connection broke (ioredis
   * does, where it is told not to send again). What comes next finds out what time it is first, and whether anybody answers.
   */
  #abandon(nowMs: number): void {
    for (const [round, overMs] of this.#underWay) {
      if (nowMs <= overMs) continue;
      this.#underWay.delete(round);
      this.#aheadMs = undefined;
    }
  }

  #flush(): void {
    this.#clear();
    while (this.#waiting.length > 0 && this.#room() > 0) {
      if (!this.#client.isReady) {
        this.#awaitReady();
        return;
      }
      const round = this.#next();
      try {
        this.#send(round);
      } catch (error) {
        // A clock that was handed over may throw.
        this.#fail(round, fault(error));
      }
    }
  }

  #awaitReady(): void {
    const problem = this.#client.wake();
    if (problem === undefined) {
      this.#scheduled = true;
      setTimeout(() => {
        this.#scheduled = false;
        this.#flush();
      }, pollMs).unref();
      return;
    }
    this.#fail(this.#waiting, fault(problem));
    this.#waiting = [];
  }

  #clear(): void {
    this.#waiting = this.#waiting.filter((step) => !step.settled);
  }

  /** The next round: what waits, shared among the rounds that may still start, so that they overlap. */
  #next(): Step[] {
    const waiting = this.#waiting.reduce((sum, { checks }) => sum + checks, 0);
    const most = Math.min(mostChecks, Math.ceil(waiting / this.#room()));
    let count = 0;
    for (let checks = 0; count < this.#waiting.length; count++) {
      checks += (this.#waiting[count] as Step).checks;
      if (count > 0 && checks > most) break;
    }
    return this.#waiting.splice(0, count);
  }

  /** One run of the script for each slot, all in one write. */
  #send(round: Step[]): void {
    const { clock, wantsState } = this.#options;
    const deadlineMs = round.reduce((earliestMs, step) => Math.min(earliestMs, step.deadlineMs), Number.POSITIVE_INFINITY);
    // The last whole millisecond there that is over by then.
    const notAfterMs = this.#aheadMs === undefined ? 0 : Math.floor(this.#aheadMs + deadlineMs) - 1;
    const batches = this.#bySlot(round).map((steps) => new Batch(steps, clock, notAfterMs, wantsState));
    const sentMs = performance.now();
    const answers = this.#client.send(batches.map((batch) => batch.run("EVALSHA")));
    this.#underWay.set(
      round,
      round.reduce((latestMs, step) => Math.max(latestMs, step.deadlineMs), 0),
    );
    let left = batches.length;
    const done = (): void => {
      if (--left > 0) return;
      this.#underWay.delete(round);
      if (this.#waiting.length > 0) this.#schedule();
    };
    answers.forEach((answer, i) => {
      const batch = batches[i] as Batch;
      answer
        .then(
          (reply) => this.#read(batch, reply, sentMs),
          (error) => this.#refused(batch, error),
        )
        .then(done, (error) => {
          this.#lost(batch, error);
          done();
        });
    });
  }

  #bySlot(round: Step[]): Step[][] {
    if (!this.#client.isCluster || round.length === 1) return [round];
    const slots = new Map<number, Step[]>();
    for (const step of round) {
      const slot = this.#client.slotOf(step.redisKey);
      const steps = slots.get(slot);
      if (steps === undefined) slots.set(slot, [step]);
      else steps.push(step);
    }
    return [...slots.values()];
  }

  /** A server that does not know the script has done nothing, and is sent its source. Of any other fault nobody knows what was done. */
  #refused(batch: Batch, error: unknown): void | Promise<void> {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) {
      this.#lost(batch, error);
      return;
    }
    const sentMs = performance.now();
    const [answer] = this.#client.send([batch.run("EVAL")]) as [Promise<unknown>];
    return answer.then(
      (reply) => this.#read(batch, reply, sentMs),
      (again) => this.#lost(batch, again),
    );
  }

  /** Whoever answers next may be another server, with another clock. */
  #lost(batch: Batch, cause: unknown): void {
    this.#aheadMs = undefined;
    this.#fail(batch.steps, fault(cause));
  }

  #fail(steps: readonly Step[], error: unknown): void {
    for (const step of steps) {
      step.fail(error);
      this.#deadlines.delete(step);
    }
  }

  /** @throws MalformedReply: then nothing that it says is believed. */
  #read(batch: Batch, list: unknown, sentMs: number): void {
    const reply = new Reply(list, batch.nowMs, sentMs, performance.now());
    if (reply.isLate) {
      this.#aheadMs = reply.serverMs - reply.receivedMs;
      // Too late by the server's clock, so nothing was charged. It was not known, or has changed: those who still wait ask again.
      this.#waiting.push(...batch.steps.filter((step) => !step.settled));
      this.#waiting.sort((one, other) => one.askedMs - other.askedMs);
      return;
    }
    for (const step of batch.steps) step.read(reply);
    reply.end();
    this.#aheadMs = reply.serverMs - reply.receivedMs;
    for (const step of batch.steps) {
      step.settle(reply);
      this.#deadlines.delete(step);
    }
  }
}
