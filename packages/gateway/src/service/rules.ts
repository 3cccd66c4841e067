import { setTimeout } from "node:timers/promises";
import { FloodgateError } from "@floodgate/core";
import { reasonOf } from "@floodgate/core/adapter";
import { fileRules, type LiveRules, redisRules } from "@floodgate/rules";
import type { Cluster, Redis } from "ioredis";
import type { Settings } from "../config/settings.js";
import { inOwnWords } from "./limit.js";

/** How long to wait between two tries to read rules that are missing, in milliseconds. */
const againMs = 1000;

/** The rules of a service. Those of a file are there at once; those in Redis may come later. */
export class ServiceRules {
  readonly #settings: Settings;
  readonly #redis: Redis | Cluster | undefined;
  readonly #use: (rules: LiveRules) => void;
  readonly #closing = new AbortController();
  /** Undefined until they have been read for the first time. */
  live: LiveRules | undefined = undefined;
  #waiting: Promise<void> | undefined;
  /** Why there are no rules yet. */
  missing: string | undefined = undefined;

  /** @param use starts the limit with the rules. It throws if it refuses them. */
  constructor(settings: Settings, redis: Redis | Cluster | undefined, use: (rules: LiveRules) => void) {
    this.#settings = settings;
    this.#redis = redis;
    this.#use = use;
  }

  /**
   * Reads the rules. If Redis does not answer or has none, it tries again in the background.
   * @param tell is called with the reason of each failure, once, and with undefined when the rules have come.
   * @throws FloodgateError if the rules are invalid, or the file cannot be read.
   */
  async open(tell: (reason: string | undefined) => void): Promise<void> {
    try {
      await this.#read();
    } catch (error) {
      if (this.#settings.rules !== undefined || !isMissing(error)) throw error;
      this.missing = (error as Error).message;
      tell(this.missing);
      this.#waiting = this.#readAgain(tell);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#waiting;
    await this.live?.close();
  }

  async #read(): Promise<void> {
    const { rules, rulesKey } = this.#settings;
    let live: LiveRules | undefined;
    try {
      live = rules === undefined ? await redisRules(this.#redis as Redis, rulesKey as string) : await fileRules(rules);
      this.#use(live);
    } catch (error) {
      await live?.close();
      if (error instanceof FloodgateError) error.message = inOwnWords(error.message);
      throw error;
    }
    this.live = live;
    this.missing = undefined;
  }

  async #readAgain(tell: (reason: string | undefined) => void): Promise<void> {
    const { signal } = this.#closing;
    while (this.missing !== undefined) {
      await setTimeout(againMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      const before = this.missing;
      await this.#read().catch((error) => {
        this.missing = reasonOf(error).why;
      });
      if (this.missing !== before) tell(this.missing);
    }
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof FloodgateError && error.code === "FLOODGATE_RULES_UNAVAILABLE";
}
