import {
  type Blocked,
  type BlockKind,
  type Charge,
  type Check,
  type Decision,
  type Inspection,
  type Limit,
  renewingStore,
  type Store,
} from "../src/store.js";

/** How the store fails. */
export type Fault = "rejects" | "throws" | "never answers" | "answers late" | "fails late";

/** The error that a failing store throws. */
export const fault: Error = new Error("The store is away");

/** An asynchronous store that fails on demand: set `fault`. */
export class FaultyStore implements Store<"async"> {
  readonly mode = "async";
  keepsDeadlines = false;
  fault: Fault | undefined;
  /** The `timeoutMs` of each call so far. */
  readonly timeouts: (number | undefined)[] = [];
  readonly #store: Store<"sync">;
  readonly #late: (() => void)[] = [];

  constructor(store: Store<"sync">) {
    this.#store = store;
  }

  /** The number of calls so far. */
  get asked(): number {
    return this.timeouts.length;
  }

  /** Settles all late answers. */
  arrive(): void {
    for (const settle of this.#late.splice(0)) settle();
  }

  consume(limit: Limit, key: string, cost: number, timeoutMs?: number): Promise<Decision> {
    return this.#answer(timeoutMs, () => this.#store.consume(limit, key, cost));
  }

  consumeAll(checks: readonly Check[], timeoutMs?: number): Promise<Decision[]> {
    return this.#answer(timeoutMs, () => this.#store.consumeAll(checks));
  }

  peek(limit: Limit, key: string, timeoutMs?: number): Promise<Decision> {
    return this.#answer(timeoutMs, () => this.#store.peek(limit, key));
  }

  renew(limit: Limit, key: string, charge: Charge, timeoutMs?: number): Promise<Decision | undefined> {
    return this.#answer(timeoutMs, () => renewingStore(this.#store).renew(limit, key, charge));
  }

  settle(limit: Limit, key: string, charge: Charge, cost: number, timeoutMs?: number): Promise<number> {
    return this.#answer(timeoutMs, () => this.#store.settle(limit, key, charge, cost));
  }

  reset(limit: Limit, key: string, timeoutMs?: number): Promise<void> {
    return this.#answer(timeoutMs, () => this.#store.reset(limit, key));
  }

  block(name: string, key: string, forMs: number, kind: BlockKind, timeoutMs?: number): Promise<Blocked> {
    return this.#answer(timeoutMs, () => this.#store.block(name, key, forMs, kind));
  }

  unblock(name: string, key: string, timeoutMs?: number): Promise<void> {
    return this.#answer(timeoutMs, () => this.#store.unblock(name, key));
  }

  keyState(limit: Limit, key: string, timeoutMs?: number): Promise<Inspection> {
    return this.#answer(timeoutMs, () => this.#store.keyState(limit, key));
  }

  #answer<T>(timeoutMs: number | undefined, decide: () => T): Promise<T> {
    this.timeouts.push(timeoutMs);
    switch (this.fault) {
      case undefined:
        return Promise.resolve(decide());
      case "rejects":
        return Promise.reject(fault);
      case "throws":
        throw fault;
      case "never answers":
        return new Promise(() => undefined);
      case "answers late": {
        const value = decide();
        return new Promise((resolve) => this.#late.push(() => resolve(value)));
      }
      case "fails late":
        return new Promise((_, reject) => this.#late.push(() => reject(fault)));
    }
  }
}
