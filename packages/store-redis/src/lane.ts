import { type Clock, Deadlines, msLeft, runningMs } from "@floodgate/core/store";
import { Batch } from "./batch.js";
import type { RedisClient } from "./clients/client.js";
import { fault } from "./faults.js";
import { Reply } from "./reply.js";
import { ServerClock } from "./server-clock.js";
import type { Queue, Step } from "./steps.js";

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
export class Lane implements Queue {
  readonly #client: RedisClient;
  readonly #options: LaneOptions;
  #waiting: Step[] = [];
  /** The rounds that were sent. */
  readonly #underWay = new Set<Step[]>();
  #scheduled = false;
  readonly #deadlines = new Deadlines();
  /** Unknown before the first answer and after a fault. */
  readonly #serverClock = new ServerClock();
  answeredMs: number = Number.NEGATIVE_INFINITY;

  constructor(client: RedisClient, options: LaneOptions) {
    this.#client = client;
    this.#options = options;
  }

  add(step: Step): void {
    // Behind a silent server nothing is sent, and so nothing else clears away those who have given up.
    if (this.#waiting[0]?.settled === true) this.#clear();
    if (this.#room() <= 0) this.#abandon();
    this.#waiting.push(step);
    step.queue = this;
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
    return (this.#serverClock.isKnown ? mostRounds : 1) - this.#underWay.size;
  }

  /**
   * Rounds that nobody waits for any more hold up no others: a library may have forgotten them when a connection broke (ioredis
   * does, where it is told not to send again). What comes next finds out what time it is first, and whether anybody answers.
   */
  #abandon(): void {
    for (const round of this.#underWay) {
      if (!round.every((step) => step.settled)) continue;
      this.#underWay.delete(round);
      this.#serverClock.forget();
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

  /** A step whose time is over is about to be given up: the server would do nothing for it, nor for those that travel with it. */
  #clear(): void {
    const nowMs = performance.now();
    this.#waiting = this.#waiting.filter((step) => !step.settled && msLeft(step, nowMs) > 0);
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
    const sentMs = performance.now();
    const leftMs = round.reduce((leastMs, step) => Math.min(leastMs, msLeft(step, sentMs)), Number.POSITIVE_INFINITY);
    const notAfterMs = this.#serverClock.notAfterMs(sentMs + leftMs);
    const batches = this.#bySlot(round).map((steps) => new Batch(steps, clock, notAfterMs, wantsState));
    const answers = this.#client.send(batches.map((batch) => batch.run("EVALSHA")));
    this.#underWay.add(round);
    for (const step of round) step.queue = undefined;
    const sent: Moment = { atMs: sentMs, runningMs: runningMs(sentMs) };
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
          (reply) => this.#read(batch, reply, sent),
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
    const sent: Moment = { atMs: sentMs, runningMs: runningMs(sentMs) };
    const [answer] = this.#client.send([batch.run("EVAL")]) as [Promise<unknown>];
    return answer.then(
      (reply) => this.#read(batch, reply, sent),
      (again) => this.#lost(batch, again),
    );
  }

  /** Whoever answers next may be another server, with another clock. */
  #lost(batch: Batch, cause: unknown): void {
    this.#serverClock.forget();
    this.#fail(batch.steps, fault(cause));
  }

  #fail(steps: readonly Step[], error: unknown): void {
    for (const step of steps) {
      step.fail(error);
      this.#deadlines.delete(step);
    }
  }

  /** @throws MalformedReply: then nothing that it says is believed. */
  #read(batch: Batch, list: unknown, sent: Moment): void {
    const receivedMs = performance.now();
    const reply = new Reply(list, batch.nowMs, sent.atMs, receivedMs);
    if (reply.isLate) {
      this.#again(batch, receivedMs - sent.atMs - (runningMs(receivedMs) - sent.runningMs));
    } else {
      for (const step of batch.steps) step.read(reply);
      reply.end();
      for (const step of batch.steps) {
        step.settle(reply);
        this.#deadlines.delete(step);
      }
    }
    this.answeredMs = receivedMs;
    this.#serverClock.learn(reply.serverMs, sent.atMs, receivedMs);
  }

  /**
   * Too late by the server's clock, so nothing was charged. That clock was not known, or has changed: those who still wait ask again. It is
   * known the less the later the reply was read, so they wait longer by the time in which the event loop did not run meanwhile.
   */
  #again(batch: Batch, stoodMs: number): void {
    for (const step of batch.steps) {
      if (step.settled) continue;
      step.deadlineMs += stoodMs;
      step.queue = this;
      this.#waiting.push(step);
    }
    this.#waiting.sort((one, other) => one.askedMs - other.askedMs);
  }
}

/** A moment by both clocks of this process. */
interface Moment {
  readonly atMs: number;
  readonly runningMs: number;
}
