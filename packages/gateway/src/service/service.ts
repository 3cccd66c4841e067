import { randomBytes } from "node:crypto";
import type { Store } from "@floodgate/core";
import { ignoresAllowed } from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import { redisStore } from "@floodgate/store-redis";
import type { Cluster, Redis } from "ioredis";
import type { Logger } from "pino";
import type { Settings } from "../config/settings.js";
import { EventLog } from "../log/events.js";
import { createLog, type LogTarget } from "../log/log.js";
import { sourceReader } from "./keys.js";
import { PendingLimit, type PendingOptions, type RulesCheck } from "./limit.js";
import { connectRedis, firstAnswer } from "./redis.js";
import { gatewayReader, proxyReader } from "./request.js";
import { ServiceRules } from "./rules.js";
import { readSecrets, type Secrets } from "./secrets.js";
import { Trust } from "./trust.js";

/** What the decision server and the proxy share: rules, store, keys, log. It listens nowhere. */
export class Service {
  readonly settings: Settings;
  readonly log: Logger;
  readonly trust: Trust;
  readonly secrets: Secrets;
  /** The client of Redis, if the settings name one. */
  readonly redis: Redis | Cluster | undefined;
  readonly limit: PendingLimit;
  readonly rules: ServiceRules;
  /** Whether it drains: answer with `Connection: close`. `/readyz` fails. */
  draining = false;
  readonly #events: EventLog;

  private constructor(settings: Settings, target: LogTarget, checkRules: RulesCheck) {
    this.settings = settings;
    this.log = createLog(settings, target);
    this.trust = new Trust(settings);
    this.secrets = readSecrets(settings);
    for (const note of this.secrets.notes) this.log.warn(note);
    this.redis = connectRedis(settings, this.secrets.redisPassword, this.log);
    const store: Store = this.redis === undefined ? memoryStore() : redisStore(this.redis, { prefix: settings.prefix });
    this.#events = new EventLog(settings, this.secrets.key, this.log);
    const options = {
      ...limitOptions(settings, this.secrets, this.redis !== undefined),
      store,
      onEvent: ignoresAllowed(this.#events.tell),
    };
    const reader = settings.upstream === undefined ? gatewayReader : proxyReader;
    this.limit = new PendingLimit(options, reader);
    this.rules = new ServiceRules(settings, this.redis, (live) => this.limit.start(live, checkRules));
  }

  /**
   * @param checkRules refuses rules that the command cannot apply.
   * @throws FloodgateError if a file cannot be read, or the rules are invalid.
   */
  static async start(settings: Settings, target: LogTarget, checkRules: RulesCheck = () => undefined): Promise<Service> {
    const service = new Service(settings, target, checkRules);
    const { log, limit, redis } = service;
    const without = settings.onStoreError === "deny" ? "each request is rejected" : "no request is limited";
    try {
      // Else the first decisions would be made without Redis.
      if (redis !== undefined) await firstAnswer(redis);
      await service.rules.open((reason) => {
        if (reason === undefined) log.info({ rules: limit.rules.length }, "The rules have arrived.");
        else log.warn(`There are no rules yet: ${reason} Until they come, ${without}.`);
      });
      return service;
    } catch (error) {
      await service.close();
      throw error;
    }
  }

  /** Closes the limit, the rules and Redis. Close what uses them before. */
  async close(): Promise<void> {
    this.draining = true;
    this.limit.close();
    await this.rules.close();
    this.redis?.disconnect();
    this.#events.close();
  }
}

function limitOptions(settings: Settings, secrets: Secrets, isShared: boolean): Omit<PendingOptions, "store"> {
  const { onStoreError, plan, headers, timeoutMs, ipv6Prefix, ambiguousPath, keys, refundStatus } = settings;
  return {
    keys: Object.fromEntries(Object.entries(keys).map(([name, source]) => [name, sourceReader(source)])),
    headers,
    ipv6Prefix,
    ambiguousPath,
    timeoutMs,
    ...(refundStatus !== undefined && { refundWhen: refundStatus }),
    ...(plan !== undefined && { plan: sourceReader(plan) }),
    // A memory store does not fail.
    ...(isShared && { onStoreError: onStoreError === "memory" ? memoryStore() : onStoreError }),
    ...(secrets.key !== undefined && { keySecret: secrets.key }),
    ...receiptSecret(secrets.receipts, isShared),
  };
}

/** Only this process redeems the receipts of a memory store, so it may make up their secret. */
function receiptSecret(secrets: readonly string[] | undefined, isShared: boolean): { receiptSecret?: readonly string[] } {
  if (secrets !== undefined) return { receiptSecret: secrets };
  return isShared ? {} : { receiptSecret: [randomBytes(32).toString("hex")] };
}
