import { Waiter } from "@floodgate/core/store";
import type { GeneralBatch } from "./batch.js";
import { movingTimeout, queueTimeout, stepFault, timeout } from "./faults.js";
import type { LeanRequest } from "./lean.js";
import type { CachedKey } from "./limits.js";
import { type DecisionReply, explains, type Reply } from "./reply.js";

/**
 * One step of the script. `read` only reads its answer; `settle` accepts it after
 * all answers of the batch were read and are valid.
 */
export abstract class Step<T = unknown, Answer = T> extends Waiter<T> {
  readonly redisKey: string;
  readonly keyCount: number;
  /** By the steady clock: the step is not late before. It may be late much later, if the event loop is blocked meanwhile. */
  readonly dueMs: number;
  /** The index of its first key in the batch, from 1. */
  firstKey = 0;
  /** The queue that it waits in, and when its server answered last; undefined after it was sent. */
  queue: { readonly answeredMs: number } | undefined = undefined;
  /** Whether a server has answered that its keys are moving to another one: maybe because another step of its run had deleted one. */
  isMoving = false;
  readonly #timeoutMs: number;
  #read: unknown;
  /** The problem of this step, if only this step failed. */
  problem: string | undefined = undefined;

  constructor(redisKey: string, timeoutMs: number, keyCount = 1) {
    super(timeoutMs);
    this.redisKey = redisKey;
    this.keyCount = keyCount;
    this.#timeoutMs = timeoutMs;
    this.dueMs = this.askedMs + timeoutMs;
  }

  /** On a Cluster only steps with an equal one share a run: those with the same keys. See `CommandQueue`. */
  get keysId(): unknown {
    return this.keyCount > 1 || this.isMoving ? this : this.redisKey;
  }

  /** How it is sent alone, if a script of its own decides it. */
  get lean(): LeanRequest | undefined {
    return undefined;
  }

  /** Whether a rejection may end early because of it. Then other processes must hear of it: see changes.ts. */
  get mayEndRejections(): boolean {
    return false;
  }

  /** Writes its keys and arguments to the batch. */
  abstract write(batch: GeneralBatch): void;

  /** Reads its answer, and changes nothing. @throws MalformedReply */
  protected abstract readAnswer(reply: Reply): Answer;

  /** Turns what was read into the result, and updates the deny cache. */
  protected accept(answer: Answer, _reply: Reply): T {
    return answer as unknown as T;
  }

  /** @throws MalformedReply */
  read(reply: Reply): void {
    this.problem = reply.stepError();
    if (this.problem !== undefined) return;
    this.#read = this.readAnswer(reply);
    this.problem = reply.takeProblem();
  }

  /** Settles the promise with what was read, unless it has timed out. */
  settle(reply: Reply): void {
    if (this.settled) return;
    if (this.problem === undefined) this.finish(this.accept(this.#read as Answer, reply));
    else this.fail(stepFault(this.problem, this.redisKey));
  }

  expire(): void {
    if (this.isMoving) {
      this.fail(movingTimeout(this.#timeoutMs));
      return;
    }
    const others = this.queue !== undefined && this.queue.answeredMs > this.askedMs;
    this.fail(others ? queueTimeout(this.#timeoutMs) : timeout(this.#timeoutMs));
  }

  /** Caches the state of a rejection, and those of the other limits in a rejected consumeAll. */
  protected remember({ known, key }: CachedKey, { unblocked, blocked, state }: DecisionReply, reply: Reply): void {
    const decision = unblocked;
    if (known.denied === undefined) return;
    if (state !== undefined) {
      if (!explains(state, decision, known.limit, reply.nowMs)) return;
      const spare = decision.limit - decision.cost;
      const { nowMs: atMs, sentMs, receivedMs } = reply;
      known.denied.add(known, key, { cells: state, spare, blocked, atMs, sentMs, receivedMs });
    } else if (decision.allowed) known.denied.doubt(known.suffix, key);
  }
}
