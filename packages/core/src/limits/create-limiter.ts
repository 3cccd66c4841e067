import { checkLease, hasSlots, heldPolicy, type Policy, type PolicyOptions, toPolicy } from "../algorithms/registry.js";
import { createLimit } from "../decide/decision.js";
import { checkStore, type Mode, renewingStore, type Store } from "../decide/store.js";
import type { EventListener } from "../events/events.js";
import { listenerOf, warner } from "../events/listeners.js";
import { type FailureOptions, failureOptionNames, guardStore } from "../failure/store-guard.js";
import { type Duration, durationOption } from "../support/duration.js";
import { shown } from "../support/errors.js";
import { WeakList } from "../support/maps.js";
import { checkOptions, functionOrNothing } from "../support/options.js";
import { encodeKey, isClientIpv6, isMissingKeyIp, type LimiterKey, namedMissingKeyText } from "./key.js";
import { type Limiter, NamedLimiter } from "./limiter.js";
import { checkName, claimNames, ownerOf } from "./names.js";
import { type ReceiptSecret, Receipts } from "./receipt.js";

export interface LimiterOptions<M extends Mode> extends FailureOptions {
  /** Appears in headers, keys and events. One name on one store is one count. */
  name: string;
  /** The limit: `fixedWindow({ limit: 5, window: "1m" })`, or the same as a plain object, as in a rules file. */
  policy: Policy | PolicyOptions;
  /** Where the counts are kept: `memoryStore()`, `redisStore(client)`, or your own. */
  store: Store<M>;
  /** Called with each event: decisions, refunds, settlements, store errors, breaker changes. */
  onEvent?: EventListener;
  /** Signs and checks receipts: a string of at least 32 characters, or several. The first one signs, and all are accepted. */
  receiptSecret?: ReceiptSecret;
  /**
   * Whether this process takes units of a busy key ahead, in one step, and spends them without asking the store. Default: as the store is
   * set up. Only a Redis store leases. Not with `leakyBucket` and `countRejected`.
   */
  lease?: boolean;
  /**
   * Sets the units of each request aside, for at most this time: `"60s"`. They count against the limit, and are not used yet. `settle` charges
   * the real cost in their place, `refund` gives them back, and without either they come back by themselves and cost nothing. Not with
   * `concurrency`, `leakyBucket` and `countRejected`.
   */
  hold?: Duration;
}

/**
 * Makes a limiter: a named policy on a store.
 *
 *     const limiter = createLimiter({ name: "login", policy: slidingWindowLog({ limit: 5, window: "15m" }), store: memoryStore() });
 *     const { allowed, retryAfterMs } = limiter.consume("user:42");
 *
 * @throws FloodgateError if an option is invalid, or another policy has this name on the store.
 */
export function createLimiter<M extends Mode>(options: LimiterOptions<M>): Limiter<M> {
  const where = "createLimiter";
  checkOptions(
    where,
    options,
    ["name", "policy", "store", ...failureOptionNames, "onEvent", "receiptSecret", "lease", "hold"],
    'createLimiter({ name: "api", policy, store: memoryStore() })',
  );
  const name = checkName(where, options.name);
  const holdMs = options.hold === undefined ? undefined : durationOption(where, "hold", options.hold);
  const policy = heldPolicy(where, toPolicy(where, options.policy), holdMs);
  const limit = createLimit(name, policy, options.lease);
  checkLease(where, options.lease, [limit]);
  const store = checkStore(where, options.store);
  if (hasSlots(policy)) renewingStore(store);
  functionOrNothing(where, "onEvent", options.onEvent, "(event) => console.log(event)");
  const receipts = Receipts.of(where, options);
  const guard = guardStore(where, store, options);
  const giveNameBack = claimNames(where, guard, [{ name, owner: ownerOf(policy) }]);
  guard.listen();
  const onEvent = listenerOf(options.onEvent);
  const definition = {
    name,
    limit,
    settled: limit,
    limits: () => [{ plan: undefined, limit }],
    rejections: undefined,
    keyText: keyTextOf(name, onEvent),
  };
  const limiter: Limiter<M> = new NamedLimiter(store, { guard, onEvent, receipts }, definition, () => {
    openLimiters.delete(limiter);
    giveNameBack();
    guard.close();
  });
  openLimiters.add(limiter);
  return limiter;
}

/** The limiters of `createLimiter` in this process that are not closed. */
export const openLimiters: WeakList<Limiter> = new WeakList();

/** The default `ipv6Prefix` of middlewares. */
const ipv6Prefix = 56;

/** How many keys a limiter looks at for addresses: a mistake shows early. */
const maxLooks = 1000;

/** The text of a limiter's keys. Warns once if keys are IPv6 addresses. */
function keyTextOf(name: string, onEvent: EventListener | undefined): (key: LimiterKey) => string {
  let looksLeft = maxLooks;
  return (key) => {
    if (looksLeft > 0) {
      looksLeft--;
      const address = [key].flat().find(isClientIpv6);
      if (address !== undefined) {
        looksLeft = 0;
        const message = `The limiter ${shown(name)} was given the IPv6 address ${shown(address)} as a key. One client has 2^64 addresses or more, so this limits nobody. Write limiter.consume(clientKey(ip)): that is the client's network.`;
        warner(onEvent)("FLOODGATE_KEY_PER_ADDRESS", message, name);
      }
    }
    return isMissingKeyIp(key) ? namedMissingKeyText(key, ipv6Prefix) : encodeKey(key);
  };
}
