import { createLimiter, type FloodgateEvent, type Limiter, type Policy, type Store } from "@floodgate/core";
import { type Clock, renewingStore } from "@floodgate/core/store";

/** A store; the suite calls `close` after each test if it exists. */
export type ClosableStore = Store & { close?(): unknown };

/** Makes an empty store that reads the time from `clock`. */
export type MakeStore = (clock: Clock) => ClosableStore | Promise<ClosableStore>;

/** The tests of one group; each gets its own world. */
export interface Suite {
  it(name: string, body: (world: World) => Promise<void>): void;
}

/** The start of an arbitrary hour; each test's clock begins here. */
export const startMs = 1_789_948_800_000;

/** Generous, for machines that run other tests at the same time. */
const patienceMs = 60_000;

/** A store under test, its clock, and a supply of unused names and keys. */
export class World {
  nowMs: number = startMs;
  readonly store: Store;
  readonly #faults: unknown[] = [];
  readonly #effort: number;
  #used = 0;

  constructor(store: Store, effort = 1) {
    this.store = patient(store);
    this.#effort = effort;
  }

  /** How many random runs a property gets. The tests of a store can scale it. */
  runs(most: number): { numRuns: number } {
    return { numRuns: Math.max(10, Math.ceil(most * this.#effort)) };
  }

  /** A limiter; by default under an unused name. */
  limiter(policy: Policy, name: string = this.fresh("limit"), receiptSecret?: string): Limiter {
    const secret = receiptSecret === undefined ? {} : { receiptSecret };
    return createLimiter({ name, policy, store: this.store, timeoutMs: patienceMs, onEvent: this.#listen, ...secret });
  }

  /** Throws the store's error. A limiter would decide without the store, and hide the failure from the test. */
  assertSound(): void {
    if (this.#faults.length > 0) throw this.#faults[0];
  }

  readonly #listen = (event: FloodgateEvent): void => {
    if (event.type === "store-error") this.#faults.push(event.error);
  };

  /** An unused word for a name or a key. */
  fresh(word = "key"): string {
    return `${word}-${this.#used++}`;
  }
}

/** Runs a test in its own world, and always closes the store. */
export async function inWorld(makeStore: MakeStore, body: (world: World) => Promise<void>, effort?: number): Promise<void> {
  let nowMs = (): number => startMs;
  const store = await makeStore(() => nowMs());
  const world = new World(store, effort);
  nowMs = () => world.nowMs;
  try {
    await body(world);
    world.assertSound();
  } finally {
    await store.close?.();
  }
}

/** The same store with a long timeout, also for direct calls. */
export function patient(store: Store): Store {
  return {
    mode: store.mode,
    dataId: store.dataId,
    keepsDeadlines: store.keepsDeadlines === true,
    consume: (limit, key, cost) => store.consume(limit, key, cost, patienceMs),
    consumeAll: (checks) => store.consumeAll(checks, patienceMs),
    peek: (limit, key) => store.peek(limit, key, patienceMs),
    settle: (limit, key, charge, cost) => store.settle(limit, key, charge, cost, patienceMs),
    ...(store.renew === undefined ? {} : { renew: (limit, key, charge) => renewingStore(store).renew(limit, key, charge, patienceMs) }),
    reset: (limit, key) => store.reset(limit, key, patienceMs),
    block: (name, key, forMs, kind) => store.block(name, key, forMs, kind, patienceMs),
    unblock: (name, key) => store.unblock(name, key, patienceMs),
    keyState: (limit, key) => store.keyState(limit, key, patienceMs),
  };
}
