import type { Changes } from "./changes.js";
import type { RedisClient } from "./clients/client.js";
import { CommandQueue, type QueueOptions } from "./command-queue.js";
import type { Step } from "./step.js";

/** One queue per server. */
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

  bySlot<T extends { readonly redisKey: string }>(all: readonly T[]): (readonly T[])[] {
    return this.#client.bySlot(all);
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
    if (step.mayFree) this.#announce(step.answer);
    queue.add(step as Step);
    return step.answer;
  }

  /** Announces a change before it is sent. Once more after it, if that failed, or was too long before. */
  #announce(done: Promise<unknown>): void {
    const announce = (): void => this.#changes.announce();
    announce();
    done.then(announce, announce);
  }
}
