import { msLeft, startTimer, workEndsWithRequest } from "@floodgate/core/store";
import type { QueueOptions } from "./batch.js";
import type { Changes } from "./changes.js";
import type { RedisClient } from "./clients/client.js";
import { CommandQueue, grouped } from "./command-queue.js";
import type { KeyedCheck } from "./limits.js";
import type { Step } from "./step.js";

/** One queue per server. On Workers one per step, because what one request has sent ends with it. */
export class CommandQueues {
  readonly #client: RedisClient;
  readonly #options: QueueOptions;
  readonly #changes: Changes;
  readonly #queues = new Map<string, CommandQueue>();

  constructor(client: RedisClient, options: QueueOptions, changes: Changes) {
    this.#client = client;
    this.#options = options;
    this.#changes = changes;
  }

  /** Groups checks by the slots of their keys. Without a Cluster there is one group. */
  bySlot(checks: readonly KeyedCheck[]): (readonly KeyedCheck[])[] {
    if (!this.#client.isCluster || checks.length === 1) return [checks];
    return grouped(checks, ({ redisKey }) => this.#client.slotOf(redisKey));
  }

  /** The address of the server that holds a key; "" if there is only one or none is known yet. */
  serverOf(redisKey: string): string {
    return this.#client.serverOf(redisKey);
  }

  ask<T>(step: Step<T, unknown>): Promise<T> {
    const server = this.#client.isCluster ? this.serverOf(step.redisKey) : "";
    let queue = this.#queues.get(server);
    if (queue === undefined || workEndsWithRequest) {
      queue = new CommandQueue(this.#client, this.#options, queue?.serverClock);
      this.#queues.set(server, queue);
    }
    const announced = step.mayEndRejections ? this.#announce(step.answer) : undefined;
    queue.add(step as Step);
    if (announced === undefined || !workEndsWithRequest) return step.answer;
    // Who keeps the request alive for the change does so for what announces it.
    const isLate = new Promise<void>((resolve) => startTimer(resolve, msLeft(step as Step)));
    return Promise.race([announced, isLate]).then(() => step.answer);
  }

  /** Announces a change before it is sent. Once more after it, if that failed, or was too long before. */
  #announce(done: Promise<unknown>): Promise<unknown> {
    const announce = (): Promise<void> => this.#changes.announce();
    return Promise.all([announce(), done.then(announce, announce)]);
  }
}
