import { activeListener, addWaiter, afterTurn, inThisContext, msLeft, ServerClock, startTimer, unblockedMs } from "@floodgate/core/store";
import { type Batch, batchOf, type QueueOptions } from "./batch.js";
import type { RedisClient } from "./clients/client.js";
import { fault, forbidden, isMoving, isNameless, stepFault } from "./faults.js";
import { Reply } from "./reply.js";
import { commands, permissions } from "./script.js";
import type { Step } from "./step.js";
import { joinEquals } from "./steps.js";

/** Rounds in flight at once: while Redis runs one, the next is written and the last is read. */
const maxRounds = 2;
/** A queue of so many keys at most is one round. */
const shortQueue = 8;
/** The most keys per round, so that one run blocks Redis for only a fraction of a millisecond. A long queue takes larger rounds. */
const maxKeys = 64;
const longQueue = 256;
const maxKeysOfLongQueue = 128;
/** How often to poll a client that is not ready, and how long to wait after TRYAGAIN. */
const pollMs = 5;

/**
 * The queue to one server. Waiting steps are sent together in one round, in order; later steps wait for the next round. A step that
 * has timed out is not sent. A step that arrives after its deadline charges nothing.
 */
export class CommandQueue {
  readonly #client: RedisClient;
  readonly #options: QueueOptions;
  #waiting: Step[] = [];
  /** The keys of the waiting steps. */
  #keyCount = 0;
  /** No waiting step is past its deadline before this time of the steady clock, unless it has settled. */
  #noneExpiresBeforeMs = Number.POSITIVE_INFINITY;
  /** The rounds in flight. An array, because a Set that gains and loses a few entries makes a new table each time. */
  #inFlight: Step[][] = [];
  #scheduled = false;
  /**
   * Flushes in the async context of a request that waits for a round. In that of the round before, tracers would attach its span to an old
   * request.
   */
  #flushForWaiting: (() => void) | undefined;
  /** Unknown before the first answer and after a fault. */
  readonly serverClock: ServerClock;
  /** The hashes of the scripts that were sent. */
  readonly #sent = new Set<string>();
  /** A round in flight with a script that was not sent before. No other follows it: if Redis lacks the script, it would be decided first. */
  #withNewScript: Step[] | undefined;
  /** When the server last answered, by this process's monotonic clock. */
  answeredMs: number = Number.NEGATIVE_INFINITY;

  constructor(client: RedisClient, options: QueueOptions, serverClock: ServerClock = new ServerClock()) {
    this.#client = client;
    this.#options = options;
    this.serverClock = serverClock;
  }

  add(step: Step): void {
    // While the server is silent nothing is sent, so timed-out steps are removed here.
    if (this.#waiting[0]?.settled === true) this.#dropExpired(performance.now());
    if (this.#room() <= 0) this.#abandonRounds();
    this.#enqueue(step);
    addWaiter(step);
    if (this.#room() <= 0) this.#flushForWaiting ??= inThisContext<void, void>(this.#flushScheduled);
    this.#schedule();
  }

  #enqueue(step: Step): void {
    this.#waiting.push(step);
    this.#keyCount += step.keyCount;
    // The running clock never runs faster than the steady clock, so no step expires sooner.
    if (step.dueMs < this.#noneExpiresBeforeMs) this.#noneExpiresBeforeMs = step.dueMs;
    step.queue = this;
  }

  /** Sends after the current turn, so that all steps of one turn share a round. */
  #schedule(): void {
    if (this.#scheduled || this.#room() <= 0) return;
    this.#scheduled = true;
    afterTurn(this.#flushForWaiting ?? this.#flushScheduled);
    this.#flushForWaiting = undefined;
  }

  readonly #flushScheduled = (): void => {
    this.#scheduled = false;
    this.#flush();
  };

  /** How many rounds may start now. While the server's clock is unknown, only one: a wrong estimate would make all rounds too late. */
  #room(): number {
    if (this.#withNewScript !== undefined) return 0;
    return (this.serverClock.isKnown && this.#client.keepsOrder ? maxRounds : 1) - this.#inFlight.length;
  }

  /**
   * Gives up rounds whose steps have all timed out, so that they do not block others. A library may never settle them: ioredis with
   * retries off drops them when the connection breaks. The next round first reads the server's clock again.
   */
  #abandonRounds(): void {
    const left = this.#inFlight.filter((round) => !round.every((step) => step.settled));
    if (left.length < this.#inFlight.length) {
      this.serverClock.forget();
      this.#withNewScript = undefined;
    }
    this.#inFlight = left;
  }

  #flush(): void {
    const nowMs = performance.now();
    this.#dropExpired(nowMs);
    while (this.#waiting.length > 0 && this.#room() > 0) {
      if (!this.#client.isReady) {
        this.#awaitReady();
        return;
      }
      const round = this.#takeRound();
      try {
        this.#send(round, nowMs);
      } catch (error) {
        // The injected clock may throw.
        this.#fail(round, fault(error));
      }
    }
  }

  #awaitReady(): void {
    const problem = this.#client.wake();
    if (problem === undefined) {
      this.#scheduled = true;
      startTimer(this.#flushScheduled, pollMs);
      return;
    }
    this.#fail(this.#waiting, fault(problem));
    this.#empty();
  }

  /** Removes steps past their deadline. The server would reject the whole round because of them. */
  #dropExpired(nowMs: number): void {
    if (nowMs < this.#noneExpiresBeforeMs) return;
    const waiting = this.#waiting;
    this.#empty();
    for (const step of waiting) if (!step.settled && msLeft(step, nowMs) > 0) this.#enqueue(step);
  }

  #empty(): void {
    this.#waiting = [];
    this.#keyCount = 0;
    this.#noneExpiresBeforeMs = Number.POSITIVE_INFINITY;
  }

  /**
   * Takes the next round: an equal share of the queue for each round that may start, so that this process works while Redis decides the other.
   * A short queue is one round, because two would arrive together, and cost both sides a command more.
   */
  #takeRound(): Step[] {
    const share = Math.max(Math.ceil(this.#keyCount / this.#room()), shortQueue);
    const most = Math.min(this.#keyCount > longQueue ? maxKeysOfLongQueue : maxKeys, share);
    let count = 0;
    let keys = 0;
    for (; count < this.#waiting.length; count++) {
      const { keyCount } = this.#waiting[count] as Step;
      if (count > 0 && keys + keyCount > most) break;
      keys += keyCount;
    }
    this.#keyCount -= keys;
    return this.#waiting.splice(0, count);
  }

  /**
   * The steps of each run. On a Cluster a run has the keys of one step: while a slot moves, keys of several steps may be on both servers, and then
   * no server decides any of them.
   */
  #runs(round: readonly Step[]): (readonly Step[])[] {
    if (!this.#client.isCluster || round.length === 1) return [round];
    return grouped(round, ({ keysId }) => keysId);
  }

  /** Sends the runs of a round in one write. */
  #send(round: Step[], sentMs: number): void {
    const notAfterMs = this.serverClock.notAfterMs(sentMs + leastLeft(round, sentMs));
    // While the server's clock is unknown, a script does nothing.
    const { clock, wantsState } = this.#options;
    const serverMs = this.serverClock.notAfterMs(sentMs);
    // A spread of the options would take as long as all the rest of a decision: see CONTRIBUTING.md.
    const batches = this.#runs(round).map((steps) =>
      batchOf(steps, { clock, wantsState, notAfterMs, serverMs, kindSize: joinEquals(steps) }),
    );
    const runs = batches.map((batch) => batch.run("EVALSHA"));
    const answers = this.#client.send(runs);
    this.#inFlight.push(round);
    for (const { args } of runs) {
      const sha = args[0] as string;
      if (!this.#sent.has(sha)) this.#withNewScript = round;
      this.#sent.add(sha);
    }
    for (const step of round) step.queue = undefined;
    const sent: Sent = { round, left: batches.length, atMs: sentMs, unblockedMs: unblockedMs(sentMs) };
    for (const [i, batch] of batches.entries()) this.#receive(batch, answers[i] as Promise<unknown>, sent);
  }

  /** @param moment when the batch was sent: with the round, or after it as source. */
  #receive(batch: Batch<Step>, answer: Promise<unknown>, sent: Sent, moment: SentAt = sent): void {
    const attempt = (work: () => void): void => {
      try {
        work();
      } catch (error) {
        this.#failBatch(batch, error);
        this.#endBatch(sent);
      }
    };
    answer.then(
      (reply) =>
        attempt(() => {
          this.#read(batch, reply, moment);
          this.#endBatch(sent);
        }),
      (error) => attempt(() => this.#onError(batch, error, sent, moment)),
    );
  }

  /** One of the batches of a round has been answered. */
  #endBatch(sent: Sent): void {
    if (--sent.left > 0) return;
    if (this.#withNewScript === sent.round) this.#withNewScript = undefined;
    const place = this.#inFlight.indexOf(sent.round);
    if (place >= 0) this.#inFlight.splice(place, 1);
    if (this.#waiting.length > 0) this.#schedule();
  }

  /**
   * A server without the script has done nothing, so it gets the source. One that moves the keys to another server has done nothing either.
   * After any other error, the outcome is unknown.
   */
  #onError(batch: Batch<Step>, error: unknown, sent: Sent, moment: SentAt): void {
    const text = error instanceof Error ? error.message : "";
    const moves = isMoving(text);
    const isUnloaded = text.startsWith("NOSCRIPT");
    tellRoundTrip(batch, moment, moves || isUnloaded || /\bWRONGTYPE\b/.test(text));
    if (isUnloaded && moment === sent) {
      const atMs = performance.now();
      const [answer] = this.#client.send([batch.run("EVAL")]) as [Promise<unknown>];
      this.#receive(batch, answer, sent, { atMs, unblockedMs: unblockedMs(atMs) });
      return;
    }
    if (moves) this.#requeueLater(batch.steps);
    else this.#failBatch(batch, error);
    this.#endBatch(sent);
  }

  /** Asks again soon for steps whose keys are moving. */
  #requeueLater(steps: readonly Step[]): void {
    for (const step of steps) step.isMoving = true;
    startTimer(() => {
      this.#requeue(steps, 0);
      this.#schedule();
    }, pollMs);
  }

  /**
   * Fails a batch. A key of another type is an error of a lean script, which has one step. After another error, the next reply may come from
   * another server with another clock.
   */
  #failBatch(batch: Batch<Step>, cause: unknown): void {
    const [step] = batch.steps as [Step];
    if (batch.steps.length === 1 && step.lean !== undefined && cause instanceof Error && cause.message.includes("WRONGTYPE")) {
      this.#fail(batch.steps, stepFault(cause.message, step.redisKey));
      return;
    }
    this.serverClock.forget();
    if (cause instanceof Error && isNameless(cause.message)) this.#failForbidden(batch.steps);
    else this.#fail(batch.steps, fault(cause));
  }

  /** Fails steps for which the user of Redis lacks a permission. Asks first which one. */
  #failForbidden(steps: readonly Step[]): void {
    const key = (steps[0] as Step).redisKey;
    const [answer] = this.#client.send([{ command: "EVAL", args: [permissions.source, "1", key, ...commands], firstKey: key }]);
    (answer as Promise<unknown>)
      .catch(() => [])
      .then((missing) => this.#fail(steps, forbidden(Array.isArray(missing) ? missing.map(String) : [], commands, key)));
  }

  #fail(steps: readonly Step[], error: unknown): void {
    for (const step of steps) step.fail(error);
  }

  /** @throws MalformedReply and accepts nothing of that reply. */
  #read(batch: Batch<Step>, list: unknown, sent: SentAt): void {
    const receivedMs = performance.now();
    tellRoundTrip(batch, sent, true);
    const reply = new Reply(list, batch.nowMs, sent.atMs, receivedMs);
    if (reply.isLate) {
      this.#requeue(batch.steps, receivedMs - sent.atMs - (unblockedMs(receivedMs) - sent.unblockedMs));
    } else {
      for (const step of batch.steps) step.read(reply);
      reply.end();
      const denied: Step[] = [];
      const moving: Step[] = [];
      for (const step of batch.steps) {
        if (step.problem !== undefined && isNameless(step.problem)) denied.push(step);
        else if (step.problem !== undefined && isMoving(step.problem)) moving.push(step);
        else step.settle(reply);
      }
      if (moving.length > 0) this.#requeueLater(moving);
      if (denied.length > 0) this.#failForbidden(denied);
    }
    this.answeredMs = receivedMs;
    this.serverClock.learn(reply.serverMs, sent.atMs, receivedMs);
  }

  /**
   * Requeues the steps that still wait, after a run that charged nothing: by the server's clock it was too late, or too far from the windows
   * of a calendar that were sent, because the estimate of that clock was wrong or missing; or the keys were moving. Extends their deadlines by the time in which the event loop was blocked.
   */
  #requeue(steps: readonly Step[], stoodMs: number): void {
    for (const step of steps) {
      if (step.settled) continue;
      step.deadlineMs += stoodMs;
      this.#enqueue(step);
    }
    this.#waiting.sort((one, other) => one.askedMs - other.askedMs);
  }
}

/** Groups items by an id, in order. */
export function grouped<T>(items: readonly T[], idOf: (item: T) => unknown): T[][] {
  const groups = new Map<unknown, T[]>();
  for (const item of items) {
    const id = idOf(item);
    const group = groups.get(id);
    if (group === undefined) groups.set(id, [item]);
    else group.push(item);
  }
  return [...groups.values()];
}

/** The time left until the first deadline of a round. */
function leastLeft(round: readonly Step[], nowMs: number): number {
  let deadlineMs = Number.POSITIVE_INFINITY;
  let latestMs = Number.POSITIVE_INFINITY;
  for (const step of round) {
    if (step.deadlineMs < deadlineMs) deadlineMs = step.deadlineMs;
    if (step.latestMs < latestMs) latestMs = step.latestMs;
  }
  return Math.min(deadlineMs - unblockedMs(nowMs), latestMs - nowMs);
}

/** Tells observers of a command that was sent, and whether it was answered. */
function tellRoundTrip({ steps }: Batch<Step>, { atMs }: SentAt, ok: boolean): void {
  activeListener()?.({ type: "round-trip", steps: steps.length, ms: performance.now() - atMs, ok });
}

/** A moment by both clocks of this process. */
interface SentAt {
  readonly atMs: number;
  readonly unblockedMs: number;
}

/** A round in flight. */
interface Sent extends SentAt {
  readonly round: Step[];
  /** Its batches that have not been answered. */
  left: number;
}
