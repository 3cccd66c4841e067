import {
  type Cells,
  type Check,
  type Clock,
  checkOptions,
  type Decision,
  type EventListener,
  type EvictionEvent,
  FloodgateError,
  functionOrNothing,
  type Limit,
  listenerOf,
  type Store,
  wholeMsClock,
  wholeNumber,
} from "@floodgate/core";
import type { Use } from "./held-keys.js";
import { KeyTable } from "./key-table.js";
import { Kinds, keyOf } from "./kinds.js";
import { Slabs } from "./slabs.js";

export interface MemoryStoreOptions {
  /**
   * The most keys that are remembered at once, over all limits of this store, up to 2^24 - 1; default 100,000. A full store forgets the key
   * that has used least of its limit among those idle longest; keys at their limit go last, the one nearest its reset first.
   */
  maxKeys?: number;
  /** The time in milliseconds since the epoch; default `Date.now`. */
  clock?: Clock;
  /** Is told of each live key that a full store forgot, once all is done that pushed it out. */
  onEvent?: EventListener;
}

/** A Map holds 2^24 keys, and lru-cache takes memory for as many as there may be at once. */
const mostKeys = 2 ** 24 - 1;

/** A store in this process, which answers at once. */
export interface MemoryStore extends Store<"sync"> {
  /** Keys that are remembered now, those whose time has passed but which nobody has cleared away included. */
  readonly size: number;
  /** How many keys a full store forgot although they still had something to remember. */
  readonly evictions: number;
}

/**
 * Limits in this process: no promise, no timer, no object per key.
 * @throws FloodgateError where an option is wrong.
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  checkOptions("memoryStore", options, ["maxKeys", "clock", "onEvent"], "memoryStore({ maxKeys: 100_000 })");
  const maxKeys = options.maxKeys === undefined ? 100_000 : wholeNumber("memoryStore", "maxKeys", options.maxKeys, 1, 100_000);
  if (maxKeys > mostKeys) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `memoryStore: \`maxKeys\` can be at most ${mostKeys}, as many as a Map holds, but was ${maxKeys}. Write maxKeys: 1_000_000.`,
    );
  }
  functionOrNothing("memoryStore", "onEvent", options.onEvent, "(event) => console.log(event)");
  return new SlabStore(maxKeys, wholeMsClock("memoryStore", options.clock), options.onEvent);
}

class SlabStore implements MemoryStore {
  readonly mode = "sync";
  readonly #clock: Clock;
  readonly #onEvent: EventListener | undefined;
  readonly #slabs = new Slabs();
  readonly #table: KeyTable;
  readonly #kinds = new Kinds();
  /** Where a key without a state is tried. */
  #scratch: Cells = new Float64Array(16);
  #evictions = 0;
  /** Keys that had to go for those that came, and of which nobody has been told yet. */
  readonly #evicted: EvictionEvent[] = [];
  #nowMs = 0;

  // The key used last is the most recently used of all, so it is found without the table. No limit: nothing is known.
  #lastLimit: Limit | undefined;
  #lastKey = "";
  #lastHandle = 0;
  #lastCells: Cells = this.#scratch;
  #lastAt = 0;
  #lastWidth = 0;
  #lastHeld = false;

  constructor(maxKeys: number, clock: Clock, onEvent: EventListener | undefined) {
    this.#clock = clock;
    this.#onEvent = listenerOf(onEvent);
    this.#table = new KeyTable(
      maxKeys,
      (entry, handle) => this.#use(entry, handle),
      (entry, handle, live) => this.#dropped(entry, handle, live),
    );
  }

  get size(): number {
    return this.#table.size;
  }

  get evictions(): number {
    return this.#evictions;
  }

  consume(limit: Limit, key: string, cost: number): Decision {
    const nowMs = this.#clock();
    if (
      key === this.#lastKey &&
      limit === this.#lastLimit &&
      limit.algorithm.size(limit.policy, this.#lastCells, this.#lastAt) <= this.#lastWidth
    ) {
      const decision = limit.algorithm.decide(limit, this.#lastCells, this.#lastAt, nowMs, cost, true);
      if (!this.#lastHeld) this.#hold(limit, key, this.#lastHandle, decision, nowMs);
      return decision;
    }
    const decision = this.#decide(limit, key, cost, nowMs, true);
    this.#tellEvicted();
    return decision;
  }

  consumeAll(checks: readonly Check[]): Decision[] {
    const nowMs = this.#clock();
    const decisions = checks.map((check) => this.#decide(check.limit, check.key, check.cost, nowMs, false));
    const allowed = checks.every((check, i) => check.shadow === true || (decisions[i] as Decision).allowed);
    for (let i = 0; i < checks.length; i++) {
      const { limit, key, cost, look } = checks[i] as Check;
      if (look === true) continue;
      // Committing a rejection writes nothing, or logs it where the policy says so.
      if (allowed || !(decisions[i] as Decision).allowed) decisions[i] = this.#decide(limit, key, cost, nowMs, true);
    }
    this.#tellEvicted();
    return decisions;
  }

  peek(limit: Limit, key: string): Decision {
    return this.#decide(limit, key, 1, this.#clock(), false);
  }

  settle(limit: Limit, key: string, { atMs, cost: reserved }: Decision, cost: number): number {
    const { algorithm, policy } = limit;
    const nowMs = this.#clock();
    const entry = this.#kinds.entry(limit, key);
    const handle = this.#table.get(entry);
    if (handle === undefined) {
      const size = this.#makeScratch(limit);
      const units = algorithm.settle(policy, this.#scratch, 0, nowMs, atMs, reserved, cost);
      if (units > 0) this.#keep(limit, key, entry, size, algorithm.decide(limit, this.#scratch, 0, nowMs, 1, false), nowMs);
      this.#tellEvicted();
      return units;
    }
    this.#turnTo(limit, key, handle);
    const units = algorithm.settle(policy, this.#lastCells, this.#lastAt, nowMs, atMs, reserved, cost);
    // A key in debt is held like one at its limit.
    if (units > 0) this.#hold(limit, key, handle, algorithm.decide(limit, this.#lastCells, this.#lastAt, nowMs, 1, false), nowMs);
    return units;
  }

  reset(limit: Limit, key: string): void {
    const entry = this.#kinds.entry(limit, key);
    const handle = this.#table.get(entry);
    if (handle === undefined) return;
    this.#lastLimit = undefined;
    this.#table.delete(entry);
    this.#slabs.free(handle);
  }

  #decide(limit: Limit, key: string, cost: number, nowMs: number, commit: boolean): Decision {
    const entry = this.#kinds.entry(limit, key);
    const handle = this.#table.get(entry);
    if (handle === undefined) return this.#decideFresh(limit, key, entry, cost, nowMs, commit);
    this.#turnTo(limit, key, handle);
    if (commit && limit.algorithm.size(limit.policy, this.#lastCells, this.#lastAt) > this.#lastWidth) this.#enlarge(limit, key);
    const decision = limit.algorithm.decide(limit, this.#lastCells, this.#lastAt, nowMs, cost, commit);
    this.#hold(limit, key, this.#lastHandle, decision, nowMs);
    return decision;
  }

  /** The key used last is this one. */
  #turnTo(limit: Limit, key: string, handle: number): void {
    this.#lastLimit = limit;
    this.#lastKey = key;
    this.#lastHeld = false;
    this.#lieAt(handle);
  }

  /** Says where the state of the key used last lies. */
  #lieAt(handle: number): void {
    const slab = this.#slabs.slab(handle);
    this.#lastHandle = handle;
    this.#lastCells = slab.cells(handle);
    this.#lastAt = slab.at(handle);
    this.#lastWidth = slab.width;
  }

  /** A key without a state is tried on zeros, and remembered only if that left something to remember. */
  #decideFresh(limit: Limit, key: string, entry: string, cost: number, nowMs: number, commit: boolean): Decision {
    const size = this.#makeScratch(limit);
    const decision = limit.algorithm.decide(limit, this.#scratch, 0, nowMs, cost, commit);
    if (commit) this.#keep(limit, key, entry, size, decision, nowMs);
    return decision;
  }

  /** Sees to it that the zeros are enough, and says how many cells the state may take. */
  #makeScratch(limit: Limit): number {
    const size = limit.algorithm.size(limit.policy, emptyCells, 0);
    if (size > this.#scratch.length) this.#scratch = new Float64Array(size);
    return size;
  }

  /** Moves what was left on the zeros to a block of the key's own. */
  #keep(limit: Limit, key: string, entry: string, size: number, decision: Decision, nowMs: number): void {
    const scratch = this.#scratch;
    let used = size;
    while (used > 0 && scratch[used - 1] === 0) used--;
    if (used === 0) return;

    this.#nowMs = nowMs;
    this.#lastLimit = undefined;
    const handle = this.#slabs.allocate(size);
    const cells = this.#slabs.cells(handle);
    const at = this.#slabs.at(handle);
    for (let i = 0; i < used; i++) {
      cells[at + i] = scratch[i] as number;
      scratch[i] = 0;
    }
    this.#table.add(entry, handle);
    this.#hold(limit, key, handle, decision, nowMs);
  }

  /** Moves the key used last, whose state has grown (a log), to a block with room for one more request. */
  #enlarge(limit: Limit, key: string): void {
    const handle = this.#lastHandle;
    const cells = this.#lastCells;
    const at = this.#lastAt;
    const larger = this.#slabs.allocate(Math.max(limit.algorithm.size(limit.policy, cells, at), 2 * this.#lastWidth));
    this.#slabs.cells(larger).set(cells.subarray(at, at + this.#lastWidth), this.#slabs.at(larger));
    this.#slabs.free(handle);
    this.#table.move(this.#kinds.entry(limit, key), larger);
    this.#lieAt(larger);
  }

  #hold(limit: Limit, key: string, handle: number, decision: Decision, nowMs: number): void {
    if (decision.remaining * 2 > decision.limit) return;
    this.#lastHeld = this.#table.hold(this.#kinds.entry(limit, key), handle, useOf(decision, nowMs));
  }

  /** What a key has used, by the plan that has least left; undefined where no plan has anything to remember of it. */
  #use(entry: string, handle: number): Use | undefined {
    const { strictest, roomiest } = this.#kinds.of(entry);
    const use = this.#useUnder(strictest, handle);
    if (roomiest === strictest) return use;
    // What a large bucket lacks, a small one may never have held.
    const other = this.#useUnder(roomiest, handle);
    return use === undefined || (other !== undefined && other.share > use.share) ? other : use;
  }

  #useUnder(limit: Limit, handle: number): Use | undefined {
    const look = limit.algorithm.decide(limit, this.#slabs.cells(handle), this.#slabs.at(handle), this.#nowMs, 1, false);
    return look.resetAfterMs === 0 ? undefined : useOf(look, this.#nowMs);
  }

  #dropped(entry: string, handle: number, live: boolean): void {
    this.#slabs.free(handle);
    if (!live) return;
    this.#evictions++;
    if (this.#onEvent === undefined) return;
    this.#evicted.push({ type: "evicted", name: this.#kinds.of(entry).strictest.name, key: keyOf(entry) });
  }

  /** Only once all of a step is done: a listener may throw, or ask the store in turn. */
  #tellEvicted(): void {
    while (this.#evicted.length > 0) this.#onEvent?.(this.#evicted.shift() as EvictionEvent);
  }
}

/** No cells at all reads as no state. */
const emptyCells: Cells = new Float64Array(3);

function useOf(decision: Decision, nowMs: number): Use {
  return { share: 1 - decision.remaining / decision.limit, resetAtMs: nowMs + decision.resetAfterMs };
}
