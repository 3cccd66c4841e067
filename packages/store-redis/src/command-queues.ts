import type { RedisClient } from "./clients/client.js";
import { CommandQueue, type QueueOptions } from "./command-queue.js";
import type { Step } from "./steps.js";

/** One queue per server. */
export class CommandQueues {
  readonly #client: RedisClient;
  readonly #options: QueueOptions;
  readonly #queues = new Map<string, CommandQueue>();

  constructor(client: RedisClient, options: QueueOptions) {
    this.#client = client;
    this.#options = options;
  }

  slotOf(redisKey: string): number {
    return this.#client.slotOf(redisKey);
  }

  /** The address of the server that holds a key; "" if there is only one or none is known yet. */
  serverOf(redisKey: string): string {
    return this.#client.serverOf(this.#client.slotOf(redisKey));
  }

  ask<T>(step: Step<T, unknown>): Promise<T> {
    const server = this.#client.isCluster ? this.serverOf(step.redisKey) : "";
    let queue = this.#queues.get(server);
    if (queue === undefined) {
      queue = new CommandQueue(this.#client, this.#options);
      this.#queues.set(server, queue);
    }
    queue.add(step as Step);
    return step.answer;
  }
}
