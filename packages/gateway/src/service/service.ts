import { randomBytes } from "node:crypto";
import type { RuleSource, Store } from "@floodgate/core";
import { ignoresAllowed, type RateLimitOptions } from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import { redisStore } from "@floodgate/store-redis";
import type { Cluster, Redis } from "ioredis";
import type { Logger } from "pino";
import type { Settings } from "../config/settings.js";
import { EventLog } from "../log/events.js";
import { createLog, type LogTarget } from "../log/log.js";
import { keyFunctions, sourceReader } from "./keys.js";
import { type GatewayLimit, PendingLimit, type RulesCheck } from "./limit.js";
import { connectRedis, firstAnswer } from "./redis.js";
import { refundsStatus } from "./refund-status.js";
import type { GatewayRequest } from "./request.js";
import { ServiceRules } from "./rules.js";
import { readSecrets, type Secrets } from "./secrets.js";
import { Trust } from "./trust.js";

/** What the decision server and the proxy share. */
export interface Service {
  readonly settings: Settings;
  /** `limit.decide(request)` answers the outcome of a request. */
  readonly limit: GatewayLimit;
  /** The live rules; undefined until rules in Redis have been read for the first time. */
  readonly rules: RuleSource | undefined;
  /** Why there are no rules. Undefined if there are. */
  readonly rulesMissing: string | undefined;
  readonly store: Store;
  /** The client of Redis, if the settings name one. */
  readonly redis: Redis | Cluster | undefined;
  readonly trust: Trust;
  readonly secrets: Secrets;
  readonly log: Logger;
  /** True once it drains: answer with `Connection: close`. `/readyz` fails. */
  readonly draining: boolean;
  /** Begins to drain. */
  drain(): void;
  /** Closes the limit, the rules and Redis. Close what uses them before. */
  close(): Promise<void>;
}

/**
 * Starts what the settings say: rules, store, keys, log. It listens nowhere.
 * @param checkRules refuses rules that a part cannot keep.
 * @throws FloodgateError if a file cannot be read, or the rules are invalid.
 */
export async function startService(
  settings: Settings,
  target: LogTarget = process.stdout,
  checkRules: RulesCheck = () => undefined,
): Promise<Service> {
  const log = createLog(settings, target);
  const trust = new Trust(settings);
  const secrets = readSecrets(settings);
  for (const note of secrets.notes) log.warn(note);
  const redis = connectRedis(settings, secrets.redisPassword, log);
  const store: Store = redis === undefined ? memoryStore() : redisStore(redis, { prefix: settings.prefix });
  const events = new EventLog(settings, secrets.key, log);
  const limit = new PendingLimit(store, { ...limitOptions(settings, secrets, redis !== undefined), onEvent: ignoresAllowed(events.tell) });
  const rules = new ServiceRules(settings, redis, (live) => limit.start(live, checkRules));
  let draining = false;
  const close = async (): Promise<void> => {
    draining = true;
    limit.close();
    await rules.close();
    redis?.disconnect();
    events.close();
  };
  try {
    // Else the first decisions would be made without Redis.
    if (redis !== undefined) await firstAnswer(redis);
    await rules.open((reason) => {
      if (reason === undefined) log.info({ rules: limit.rules.length }, "The rules have arrived.");
      else
        log.warn(
          `There are no rules yet: ${reason} Until they come, ${settings.onStoreError === "deny" ? "each request is rejected" : "no request is limited"}.`,
        );
    });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    settings,
    limit,
    get rules() {
      return rules.live;
    },
    get rulesMissing() {
      return rules.missing;
    },
    store,
    redis,
    trust,
    secrets,
    log,
    get draining() {
      return draining;
    },
    drain() {
      draining = true;
    },
    close,
  };
}

function limitOptions(settings: Settings, secrets: Secrets, isShared: boolean): Omit<RateLimitOptions<GatewayRequest, string>, "rules"> {
  const { onStoreError, plan, headers, timeoutMs, ipv6Prefix, ambiguousPath, keys, refundStatus } = settings;
  return {
    keys: keyFunctions(keys),
    headers,
    ipv6Prefix,
    ambiguousPath,
    timeoutMs,
    ...(refundStatus !== undefined && { refundWhen: refundsStatus(refundStatus) }),
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
