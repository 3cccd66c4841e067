import type { Decision, Store } from "@floodgate/core";
import { decision, inspectIn, type Limit } from "@floodgate/core/store";

/**
 * Makes a store that counts nothing, so that no limit on it rejects: for tests that are about something else. Options, keys and headers are
 * those of the real limit. Only a limit of 0 still rejects, because it asks no store.
 *
 *     const app = createApp(unlimitedStore());
 */
export function unlimitedStore(): Store<"sync"> {
  const allow = (limit: Limit, cost: number): Decision =>
    decision(limit, cost, {
      allowed: true,
      remaining: limit.policy.quota,
      retryAfterMs: 0,
      resetAfterMs: 0,
      delayMs: 0,
      atMs: Date.now(),
    });
  return {
    mode: "sync",
    consume: (limit, _, cost) => allow(limit, cost),
    consumeAll: (checks) => checks.map(({ limit, cost }) => allow(limit, cost)),
    peek: (limit) => allow(limit, 1),
    settle: () => 0,
    renew: (limit, _, { cost }) => allow(limit, cost),
    reset: () => undefined,
    block: () => ({ leftMs: 0, begun: false }),
    unblock: () => undefined,
    keyState: (limit) => inspectIn(limit, new Float64Array(limit.algorithm.size(limit.policy, new Float64Array(3), 0)), 0, Date.now()),
  };
}
