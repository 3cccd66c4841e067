import type { RedisClient } from "./clients/client.js";
import { Lane, type LaneOptions } from "./lane.js";
import type { Step } from "./steps.js";

/** One lane per server. */
export class Lanes {
  readonly #client: RedisClient;
  readonly #options: LaneOptions;
  readonly #lanes = new Map<string, Lane>();

  constructor(client: RedisClient, options: LaneOptions) {
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

  ask<T>(step: Step<T>): Promise<T> {
    const server = this.#client.isCluster ? this.serverOf(step.redisKey) : "";
    let lane = this.#lanes.get(server);
    if (lane === undefined) {
      lane = new Lane(this.#client, this.#options);
      this.#lanes.set(server, lane);
    }
    lane.add(step as Step);
    return step.answer;
  }
}
