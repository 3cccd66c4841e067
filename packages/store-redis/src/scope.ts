import { type Clock, WeakScopes, wholeMsClock } from "@floodgate/core/store";
import { Changes } from "./changes.js";
import type { RedisClient } from "./clients/client.js";
import { type AnyRedis, clientOf } from "./clients/index.js";
import { CommandQueues } from "./command-queues.js";
import type { DenyCacheOptions } from "./deny-cache.js";
import { Leases } from "./lease/leases.js";
import { KnownLimits } from "./limits.js";

/** What decides whether two stores of one scope share their parts. */
export interface PartOptions {
  readonly clock: Clock | undefined;
  readonly denyCache: Omit<DenyCacheOptions, "clock" | "changes"> | undefined;
  /** How long leases live; undefined if only limits lease that say so. */
  readonly leaseMs: number | undefined;
}

/** The parts of a store: its queues, deny caches and leases. Stores of one scope share them if their options are equal. */
export interface Parts {
  readonly queues: CommandQueues;
  readonly limits: KnownLimits;
  readonly leases: Leases;
}

/** Identity shared by stores over the same client and prefix, and what they share. */
export class Scope {
  readonly client: RedisClient;
  readonly prefix: string;
  readonly #parts: { readonly options: PartOptions; readonly parts: Parts }[] = [];

  private constructor(client: RedisClient, prefix: string) {
    this.client = client;
    this.prefix = prefix;
  }

  /** By client and prefix. Stores and charges refer to them. */
  static readonly #known = new WeakScopes<Scope>();

  /** @throws FloodgateError if the client is invalid. */
  static of(where: string, client: AnyRedis, prefix: string): Scope {
    const redis = clientOf(where, client);
    return Scope.#known.getOrMake(client, prefix, () => new Scope(redis, prefix));
  }

  parts(options: PartOptions): Parts {
    // Beside the clock, options are only numbers.
    const known = this.#parts.find(
      (other) => other.options.clock === options.clock && JSON.stringify(other.options) === JSON.stringify(options),
    );
    if (known !== undefined) return known.parts;
    const { denyCache, leaseMs } = options;
    const clock = options.clock === undefined ? undefined : wholeMsClock("redisStore", options.clock);
    const changes = new Changes(this.client, `${this.prefix}:changes`, clock, denyCache?.maxAgeMs ?? 0);
    const queues = new CommandQueues(this.client, { clock, wantsState: denyCache !== undefined }, changes);
    const limits = new KnownLimits(denyCache && { ...denyCache, clock, changes }, leaseMs);
    const leases = new Leases(clock, queues, `${this.prefix}:`);
    const parts = { queues, limits, leases };
    this.#parts.push({ options, parts });
    return parts;
  }

  /** Gives back the units that stores of this scope hold of a key that Redis has rejected. Returns whether there are any. */
  release(suffix: string, key: string): boolean {
    return this.#parts.map(({ parts }) => parts.leases.release(suffix, key)).includes(true);
  }

  /** Ends the cached rejections of a key under all limits that share its count. */
  forgetDenied<T>(suffix: string, key: string, done: Promise<T>): Promise<T> {
    for (const { parts } of this.#parts) parts.limits.denied?.forget(suffix, key, done);
    return done;
  }

  /** Ends the leases and the cached rejections of a key under all limits of a name. @param change resets or blocks it, or lifts its block. */
  forgetName<T>(name: string, key: string, change: () => Promise<T>): Promise<T> {
    for (const { parts } of this.#parts) parts.leases.forgetName(name, key);
    const done = change();
    for (const { parts } of this.#parts) parts.limits.denied?.forgetName(name, key, done);
    return done;
  }
}
