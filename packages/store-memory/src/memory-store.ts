import type { Decision, EventListener, Store } from "@floodgate/core";
import {
  activeListener,
  type Blocked,
  type BlockKind,
  beganByCharge,
  beganState,
  blockedDecision,
  blockIn,
  type Cells,
  type Charge,
  type Check,
  type Clock,
  checkOptions,
  type EvictionEvent,
  functionOrNothing,
  type Inspection,
  inState,
  inspectIn,
  type KeyBlock,
  keyBlockIn,
  type Limit,
  liftBanIn,
  listenerOf,
  renewIn,
  settleIn,
  wholeMsClock,
  wholeNumber,
  wrongOption,
} from "@floodgate/core/store";
import { KeyTable, slack } from "./key-table.js";
import { type Keyspace, type Keyspaces, noCells } from "./keyspaces.js";
import { type Page, pageBits, pageMask, type Slots, use } from "./slots.js";
import { classOf } from "./use-lists.js";

export interface MemoryStoreOptions {
  /**
   * The most keys in memory, over all limits of this store: up to 2^23 (8,388,608), default 100,000. A full store evicts ended
   * keys as they are found, then about the key that has used least of its limit, and blocked keys last, about the nearest reset first.
   */
  maxKeys?: number;
  /** Returns milliseconds since the epoch. Default `Date.now`. */
  clock?: Clock;
  /** Called for each live key that a full store evicted, after the request that needed its place. */
  onEvent?: EventListener;
}

/** The most keys that a Map of V8 holds however often keys come and go. Deleted keys fill up a Map of 2^24, which then throws. */
const largestMaxKeys = 2 ** 23;

/**
 * A store in this process. It is synchronous, starts no timers and allocates no object per key.
 *
 *     const store = memoryStore({ maxKeys: 1_000_000 });
 *     app.use(rateLimit({ limit: 100, window: "1m", store }));
 *
 * @throws FloodgateError if an option is invalid.
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  checkOptions("memoryStore", options, ["maxKeys", "clock", "onEvent"], "memoryStore({ maxKeys: 100_000 })");
  const { maxKeys: given = 100_000, clock, onEvent } = options;
  const maxKeys = wholeNumber("memoryStore", "maxKeys", given, 1, 100_000);
  if (maxKeys > largestMaxKeys) throw wrongOption("memoryStore", "maxKeys", `at most ${largestMaxKeys}`, maxKeys, "maxKeys: 100_000");
  functionOrNothing("memoryStore", "onEvent", onEvent, "(event) => console.log(event)");
  return new TableStore(maxKeys, clock === undefined ? undefined : wholeMsClock("memoryStore", clock), onEvent);
}

/** A store in this process, which answers at once. */
export interface MemoryStore extends Store<"sync"> {
  /** Number of keys in memory, including expired ones that were not removed yet. */
  readonly size: number;
  renew(limit: Limit, key: string, charge: Charge): Decision;
  /** Number of live keys that a full store has evicted. Expired keys do not count. */
  readonly evictions: number;
}

// Looked up once: an export of another package is read through a getter.
const stateOf: typeof inState = inState;
const begins: typeof beganState = beganState;

/** The memory store, whose options are checked. */
class TableStore implements MemoryStore {
  readonly mode = "sync";
  evictions = 0;
  /** Undefined for `Date.now`, which is read without another call. */
  readonly #clock: Clock | undefined;
  readonly #table: KeyTable;
  readonly #keyspaces: Keyspaces;
  readonly #slots: Slots;
  /** Zeros, on which a key without a state is decided. */
  #scratch: Cells = new Float64Array(16);
  /** The slots of the keys of a request under several limits, as the first pass found them. */
  readonly #found: (number | undefined)[] = [];
  // The key used last is found without a lookup, until any slot is deleted. Without `#lastLimit` no key is known.
  #lastLimit: Limit | undefined;
  #lastKey = "";
  #lastSlot = 0;
  #lastPage: Page | undefined;
  #lastAt = 0;
  #lastDeleted = 0;
  /** Whether the keys of the current request take no part in the order of eviction. They are placed at its end. */
  #withdrawn = false;
  readonly #onEvent: EventListener | undefined;
  /** Evictions of the current step, which the listener has not received yet. */
  readonly #unsentEvictions: EvictionEvent[] = [];

  constructor(maxKeys: number, clock: Clock | undefined, onEvent: EventListener | undefined) {
    this.#clock = clock;
    this.#onEvent = listenerOf(onEvent);
    this.#table = new KeyTable(maxKeys, (name, key) => {
      this.evictions++;
      if (activeListener(this.#onEvent) !== undefined) this.#unsentEvictions.push({ type: "evicted", name, key });
    });
    this.#slots = this.#table.slots;
    this.#keyspaces = this.#table.keyspaces;
  }

  get size(): number {
    return this.#slots.size;
  }

  consume(limit: Limit, key: string, cost: number): Decision {
    const nowMs = this.#clock === undefined ? Date.now() : this.#clock();
    if (key === this.#lastKey && limit === this.#lastLimit && this.#lastDeleted === this.#slots.deleted) {
      const page = this.#lastPage as Page;
      const decision = limit.algorithm.decide(limit, page.cells, this.#lastAt, nowMs, cost, true);
      return this.#noted(limit, this.#lastSlot, page, this.#lastAt, cost, nowMs, decision);
    }
    const keyspace = this.#keyspace(limit);
    const slot = keyspace.slots.get(key);
    const decision = this.#decide(keyspace, limit, key, slot, cost, nowMs, true);
    this.#lastLimit = undefined;
    // Only its limit's algorithm is to be asked about the key.
    if (slot !== undefined && !keyspace.grows && keyspace.smallest === keyspace.largest && keyspace.blocks === undefined) {
      this.#lastLimit = limit;
      this.#lastKey = key;
      this.#lastSlot = slot;
      this.#lastPage = this.#slots.page(slot);
      this.#lastAt = this.#lastPage.at(slot);
      this.#lastDeleted = this.#slots.deleted;
    }
    this.#sendEvictions();
    return decision;
  }

  consumeAll(checks: readonly Check[]): Decision[] {
    const nowMs = this.#now();
    const { length } = checks;
    // Allocated in its full length, because an array that grows reserves too much memory.
    const decisions = new Array<Decision>(length);
    if (this.#slots.size + length > this.#table.maxKeys) this.#withdraw(checks);
    let passes = true;
    let uncommitted = length;
    for (let i = 0; i < length; i++) {
      const { limit, key, cost, shadow, dryRun } = checks[i] as Check;
      const keyspace = this.#keyspace(limit);
      const slot = keyspace.slots.get(key);
      this.#found[i] = keyspace.grows ? undefined : slot;
      // If all others pass, the last check alone decides, so it is committed at once.
      const isDecisive = i === length - 1 && passes && dryRun !== true;
      const decision = this.#decide(keyspace, limit, key, slot, cost, nowMs, isDecisive);
      decisions[i] = decision;
      if (isDecisive) uncommitted--;
      if (shadow !== true && !decision.allowed) passes = false;
    }
    for (let i = 0; i < uncommitted; i++) {
      const { limit, key, cost, dryRun } = checks[i] as Check;
      if (dryRun === true || !(decisions[i]?.allowed ? passes : limit.algorithm.countsRejected?.(limit.policy))) continue;
      const keyspace = this.#keyspace(limit);
      decisions[i] = this.#decide(keyspace, limit, key, this.#found[i] ?? keyspace.slots.get(key), cost, nowMs, true);
    }
    if (this.#withdrawn) this.#placeAgain(checks, nowMs);
    this.#sendEvictions();
    return decisions;
  }

  peek(limit: Limit, key: string): Decision {
    const keyspace = this.#keyspace(limit);
    return this.#decide(keyspace, limit, key, keyspace.slots.get(key), 1, this.#now(), false);
  }

  settle(limit: Limit, key: string, charge: Charge, cost: number): number {
    const nowMs = this.#now();
    const keyspace = this.#keyspace(limit);
    let slot = keyspace.slots.get(key);
    let units: number;
    if (slot === undefined) {
      const zeros = this.#zeros(keyspace.size);
      units = settleIn(limit, zeros, 0, nowMs, charge, cost, undefined);
      if (units > 0) this.#keep(keyspace, key, nowMs, limit.algorithm.decide(limit, zeros, 0, nowMs, 1, false));
      this.#sendEvictions();
    } else {
      const isNew = charge.cost === 0 || charge.heldUntilMs !== undefined;
      if (isNew && keyspace.grows) slot = this.#table.withRoom(limit, slot);
      const page = this.#slots.page(slot);
      const at = page.at(slot);
      units = settleIn(limit, page.cells, at, nowMs, charge, cost, page.numbers[2 * at - 2]);
      if (beganByCharge(limit, page.cells, at, nowMs, charge, cost, units)) this.#slots.beginState(slot);
      // A clock that has stepped back does not see what was charged ahead of it.
      if (units !== 0 || isNew) this.#table.reposition(slot, nowMs, units >= 0);
    }
    return units;
  }

  renew(limit: Limit, key: string, charge: Charge): Decision {
    const nowMs = this.#now();
    const keyspace = this.#keyspace(limit);
    const found = keyspace.slots.get(key);
    if (found === undefined) {
      const decision = this.#keep(keyspace, key, nowMs, renewIn(limit, this.#zeros(keyspace.size), 0, nowMs, charge, undefined));
      this.#sendEvictions();
      return decision;
    }
    const slot = this.#table.withRoom(limit, found);
    const page = this.#slots.page(slot);
    const at = page.at(slot);
    const decision = renewIn(limit, page.cells, at, nowMs, charge, page.numbers[2 * at - 2]);
    if (begins(limit, page.cells, at, nowMs, decision)) this.#slots.beginState(slot);
    this.#table.reposition(slot, nowMs, true);
    return stateOf(decision, page.numbers[2 * at - 2] as number);
  }

  reset(limit: Limit, key: string): void {
    const keyspace = this.#keyspace(limit);
    this.#forget(keyspace, key);
    const slot = keyspace.blocks?.slots.get(key);
    if (slot === undefined) return;
    liftBanIn(...this.#slots.state(slot));
    this.#table.reposition(slot, this.#now());
  }

  block(name: string, key: string, forMs: number, kind: BlockKind): Blocked {
    const nowMs = this.#now();
    this.#lastLimit = undefined;
    const blocks = this.#keyspaces.findBlocks(name) ?? this.#keyspaces.addBlocks(name);
    const slot = blocks.slots.get(key) ?? this.#table.add(blocks, key, nowMs);
    const blocked = blockIn(...this.#slots.state(slot), nowMs, forMs, kind);
    this.#table.reposition(slot, nowMs);
    this.#sendEvictions();
    return blocked;
  }

  unblock(name: string, key: string): void {
    this.#forget(this.#keyspaces.findBlocks(name), key);
  }

  keyState(limit: Limit, key: string): Inspection {
    const [cells, at] = this.#stateAt(this.#keyspaces.find(limit), key) ?? [this.#zeros(limit.algorithm.size(limit.policy, noCells, 0)), 0];
    const [blocks, blocksAt] = this.#stateAt(this.#keyspaces.findBlocks(limit.name), key) ?? [];
    return inspectIn(limit, cells, at, this.#now(), blocks, blocksAt);
  }

  #now(): number {
    return this.#clock === undefined ? Date.now() : this.#clock();
  }

  #stateAt(keyspace: Keyspace | undefined, key: string): [cells: Cells, at: number] | undefined {
    const slot = keyspace?.slots.get(key);
    return slot === undefined ? undefined : this.#slots.state(slot);
  }

  #forget(keyspace: Keyspace | undefined, key: string): void {
    const slot = keyspace?.slots.get(key);
    if (slot !== undefined) this.#table.delete(slot);
  }

  /** Why a key is turned away; undefined if it is not. A block that has ended is forgotten. */
  #blockOf(blocks: Keyspace, key: string, nowMs: number): KeyBlock | undefined {
    const slot = blocks.slots.get(key);
    if (slot === undefined) return undefined;
    const blocked = keyBlockIn(...this.#slots.state(slot), nowMs);
    if (blocked === undefined) this.#table.delete(slot);
    return blocked;
  }

  #keyspace(limit: Limit): Keyspace {
    // It may be another plan of the key that was used last.
    if (limit !== this.#lastLimit) this.#lastLimit = undefined;
    return this.#keyspaces.of(limit);
  }

  #decide(
    keyspace: Keyspace,
    limit: Limit,
    key: string,
    found: number | undefined,
    cost: number,
    nowMs: number,
    commit: boolean,
  ): Decision {
    if (keyspace.blocks !== undefined && (this.#withdrawn || keyspace.blocks.blocked.size > 0)) {
      const blocked = this.#blockOf(keyspace.blocks, key, nowMs);
      if (blocked !== undefined) return blockedDecision(this.#peek(keyspace, limit, found, cost, nowMs), blocked, nowMs);
    }
    if (!commit) return this.#peek(keyspace, limit, found, cost, nowMs);
    // A key without a state is tried on zeros, and remembered only if that left something to remember.
    if (found === undefined)
      return this.#keep(keyspace, key, nowMs, limit.algorithm.decide(limit, this.#zeros(keyspace.size), 0, nowMs, cost, true));
    const slot = keyspace.grows ? this.#table.withRoom(limit, found) : found;
    const page = this.#slots.pages[slot >>> pageBits] as Page;
    const at = (slot & pageMask) * page.stride + 1;
    const decision = limit.algorithm.decide(limit, page.cells, at, nowMs, cost, true);
    if (keyspace.smallest === keyspace.largest) return this.#noted(limit, slot, page, at, cost, nowMs, decision);
    if (begins(limit, page.cells, at, nowMs, decision)) this.#slots.beginState(slot);
    if (!this.#withdrawn) this.#table.reposition(slot, nowMs, true);
    return stateOf(decision, page.numbers[2 * at - 2] as number);
  }

  /** Places a key by what was decided, if that may change its place, and names the state in the decision. */
  #noted(limit: Limit, slot: number, page: Page, at: number, cost: number, nowMs: number, decision: Decision): Decision {
    const { allowed, remaining, limit: quota } = decision;
    // Usually more than this charge is missing, so the state is older.
    if ((remaining === quota - cost || cost > quota) && begins(limit, page.cells, at, nowMs, decision)) this.#slots.beginState(slot);
    const listed = (page.numbers[2 * at - 1] as number) & use.mask;
    const stays =
      remaining === 0
        ? !allowed && listed === use.blocked
        : listed < use.blocked && (quota - remaining) * use.blocked < (listed + slack) * quota;
    if (!stays && !this.#withdrawn) this.#table.place(slot, classOf(decision), nowMs + decision.resetAfterMs);
    return allowed ? stateOf(decision, page.numbers[2 * at - 2] as number) : decision;
  }

  /** What a request would get. */
  #peek(keyspace: Keyspace, limit: Limit, slot: number | undefined, cost: number, nowMs: number): Decision {
    if (slot === undefined) return limit.algorithm.decide(limit, this.#zeros(keyspace.size), 0, nowMs, cost, false);
    const page = this.#slots.pages[slot >>> pageBits] as Page;
    return limit.algorithm.decide(limit, page.cells, (slot & pageMask) * page.stride + 1, nowMs, cost, false);
  }

  #zeros(size: number): Cells {
    if (size > this.#scratch.length) this.#scratch = new Float64Array(size);
    return this.#scratch;
  }

  /** Moves a state from the zeros to a slot of its own, unless it is still all zero. Answers what was decided there, with the state's number. */
  #keep(keyspace: Keyspace, key: string, nowMs: number, decision: Decision): Decision {
    const scratch = this.#scratch;
    // How many cells there are up to the last that is not zero.
    let used = keyspace.size;
    while (used > 0 && scratch[used - 1] === 0) used--;
    if (used === 0) return decision;

    const slot = this.#table.add(keyspace, key, nowMs);
    const page = this.#slots.page(slot);
    const at = page.at(slot);
    for (let i = 0; i < used; i++) {
      page.cells[at + i] = scratch[i] as number;
      scratch[i] = 0;
    }
    if (keyspace.smallest !== keyspace.largest) this.#table.reposition(slot, nowMs, true);
    else this.#table.place(slot, classOf(decision), nowMs + decision.resetAfterMs);
    if (this.#withdrawn) this.#table.withdraw(slot);
    return stateOf(decision, page.numbers[2 * at - 2] as number);
  }

  /** If a request may add keys, withdraws those of its keys that exist, and their blocks, so that adding one evicts none of the others. */
  #withdraw(checks: readonly Check[]): void {
    if (checks.every(({ limit, key }) => this.#keyspace(limit).slots.get(key) !== undefined)) return;
    for (const slot of this.#slotsOf(checks)) this.#table.withdraw(slot);
    this.#withdrawn = true;
  }

  #placeAgain(checks: readonly Check[], nowMs: number): void {
    this.#withdrawn = false;
    for (const slot of this.#slotsOf(checks)) this.#table.reposition(slot, nowMs, true);
    this.#table.trim(nowMs);
  }

  /** The slots of a request's keys and of their blocks. */
  #slotsOf(checks: readonly Check[]): number[] {
    return checks.flatMap(({ limit, key }) => {
      const keyspace = this.#keyspace(limit);
      return [keyspace, keyspace.blocks].flatMap((one) => one?.slots.get(key) ?? []);
    });
  }

  /** Call it once a step is whole, because a listener may throw, or call the store. */
  #sendEvictions(): void {
    if (this.#unsentEvictions.length === 0) return;
    for (const event of this.#unsentEvictions.splice(0)) activeListener(this.#onEvent)?.(event);
  }
}
