import { type Clock, createLimiter, type FloodgateEvent, type Limiter, type Policy, type Store } from "@floodgate/core";

/** What the suite needs of a test runner: those of Vitest, Jest and `node:test` fit. */
export interface Runner {
  describe(name: string, body: () => void): unknown;
  it(name: string, body: () => Promise<void>, timeoutMs?: number): unknown;
}

/** A store that the suite may close when a case is over. */
export type ClosableStore = Store & { close?(): unknown };

/** Makes an empty store that tells the time by the clock that it is given. */
export type MakeStore = (clock: Clock) => ClosableStore | Promise<ClosableStore>;

/** The runner with a world of its own for each case. */
export interface Suite {
  describe(name: string, body: () => void): void;
  it(name: string, body: (world: World) => Promise<void>): void;
}

/** An hour like any other; the clock of a case starts here. */
export const startMs = 1_789_948_800_000;

/** A machine that is busy with other tests may take its time. */
const patienceMs = 60_000;

/** A store under test, its clock, and names and keys that nobody used before. */
export class World {
  nowMs: number = startMs;
  readonly store: Store;
  readonly #faults: unknown[] = [];
  #used = 0;

  constructor(store: Store) {
    this.store = patient(store);
  }

  /** A limiter with a name of its own. */
  limiter(policy: Policy, name: string = this.fresh("limit"), receiptSecret?: string): Limiter {
    const secret = receiptSecret === undefined ? {} : { receiptSecret };
    return createLimiter({ name, policy, store: this.store, timeoutMs: patienceMs, onEvent: this.#listen, ...secret });
  }

  /** Throws what the store failed with: a limiter decides without it, and a case is not about that. */
  assertSound(): void {
    if (this.#faults.length > 0) throw this.#faults[0];
  }

  readonly #listen = (event: FloodgateEvent): void => {
    if (event.type === "store-error") this.#faults.push(event.error);
  };

  /** A word that was not used before, for a name or a key. */
  fresh(word = "key"): string {
    return `${word}-${this.#used++}`;
  }
}

/** Runs a case in a world of its own, and closes the store whatever comes of it. */
export async function inWorld(makeStore: MakeStore, body: (world: World) => Promise<void>): Promise<void> {
  let nowMs = (): number => startMs;
  const store = await makeStore(() => nowMs());
  const world = new World(store);
  nowMs = () => world.nowMs;
  try {
    await body(world);
    world.assertSound();
  } finally {
    await store.close?.();
  }
}

/** The same store with a long timeout, also for calls without a limiter. */
export function patient(store: Store): Store {
  return {
    mode: store.mode,
    sharedAs: store.sharedAs,
    keepsDeadlines: store.keepsDeadlines === true,
    consume: (limit, key, cost) => store.consume(limit, key, cost, patienceMs),
    consumeAll: (checks) => store.consumeAll(checks, patienceMs),
    peek: (limit, key) => store.peek(limit, key, patienceMs),
    settle: (limit, key, charge, cost) => store.settle(limit, key, charge, cost, patienceMs),
    reset: (limit, key) => store.reset(limit, key, patienceMs),
  };
}
