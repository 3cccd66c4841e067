import type { Server } from "node:http";
import type { Decision, FloodgateEvent } from "@floodgate/core";
import type { BreakerState } from "@floodgate/core/store";
import { type RedisStore, redisStore } from "@floodgate/store-redis";
import { appOf, close, type Framework, listen } from "../apps.js";
import type { Client } from "./clients.js";
import { clientLimit, type OnStoreErrorName, oneLimit, onStoreError, twoLimits } from "./limits.js";
import type { Stopwatch } from "./stopwatch.js";

export const timeoutMs = 100;

/** A listening app. */
export interface Place {
  readonly name: string;
  readonly port: number;
  readonly witness: Witness;
}

/** One app per framework and client library, all in this process on free ports, with shared limits in Redis. */
export interface Stage {
  readonly apps: readonly Place[];
  /** Gives back the units of leases. */
  releaseLeases(): Promise<unknown>;
  tearDown(): void;
}

export async function stageOf(
  clients: readonly Client[],
  whenStoreFails: OnStoreErrorName,
  stopwatch: Stopwatch,
  lease: boolean,
): Promise<Stage> {
  const apps: Place[] = [];
  const servers: Server[] = [];
  const stores: RedisStore[] = [];
  for (const { library, redis } of clients) {
    const store = redisStore(redis, { lease });
    stores.push(store);
    const witness = new Witness();
    const limits = { store, timeoutMs, onStoreError: onStoreError(whenStoreFails), onEvent: witness.onEvent };
    const rulesOf = { Express: oneLimit, Koa: twoLimits, Hono: twoLimits };
    for (const [framework, rules] of Object.entries(rulesOf) as [Framework, typeof oneLimit][]) {
      const { server } = appOf[framework]({ ...limits, rules });
      stopwatch.watch(server);
      servers.push(server);
      apps.push({ name: `${framework}, ${library}`, port: await listen(server), witness });
    }
  }
  return {
    apps,
    releaseLeases: () => Promise.all(stores.map((store) => store.releaseLeases())),
    tearDown() {
      for (const server of servers) close(server);
    },
  };
}

/** Listens to the limits of one store, to compare each HTTP response with its decision. */
class Witness {
  /** The state of the store's breaker. */
  breaker: BreakerState = "closed";
  readonly #decisions = new Map<string, Decision[]>();

  readonly onEvent = (event: FloodgateEvent): void => {
    if (event.type === "breaker") this.breaker = event.state;
    if (!("decision" in event && "key" in event) || event.type === "refunded" || event.type === "settled" || event.name !== clientLimit)
      return;
    const known = this.#decisions.get(event.key);
    if (known === undefined) this.#decisions.set(event.key, [event.decision]);
    else known.push(event.decision);
  };

  /** The decisions for a client since the last call, oldest first. */
  take(client: string): Decision[] {
    const decisions = this.#decisions.get(client) ?? [];
    this.#decisions.delete(client);
    return decisions;
  }
}
