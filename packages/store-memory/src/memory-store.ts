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
  type Store,
  wholeMsClock,
  wholeNumber,
} from "@floodgate/core";
import type { Use } from "./held-keys.js";
import { KeyTable } from "./key-table.js";
import { Slabs } from "./slabs.js";

export interface MemoryStoreOptions {
  /**
   * The most keys that are remembered at once, over all limits of this store, up to 2^24 - 1; default 100,000. A full store forgets the key
   * that has used least of its limit among those idle longest; keys at their limit go last, the one nearest its reset first.
   */
  maxKeys?: number;
  /** The time in milliseconds since the epoch; default `Date.now`. */
  clock?: Clock;
  /** Is told of each live key that a full store forgot. */
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

/** The limits that share a count: those of one name whose policies share a `stateKind`. */
interface Kind {
  readonly prefix: string;
  /** The one with the smallest quota: by it a key's use is judged, so that plans cannot hide a blocked key. */
  strictest: Limit;
}

const noKind: Kind = { prefix: "", strictest: undefined as never };

class SlabStore implements MemoryStore {
  readonly mode = "sync";
  readonly #clock: Clock;
  readonly #onEvent: EventListener | undefined;
  readonly #slabs = new Slabs();
  readonly #table: KeyTable;
  readonly #kinds: Kind[] = [];
  readonly #kindsByName = new Map<string, Kind>();
  readonly #kindsByLimit = new WeakMap<Limit, Kind>();
  /** The limit asked for last and its kind: most requests ask for the same. */
  #kindLimit: Limit | undefined;
  #kind: Kind = noKind;
  /** Where a key without a state is tried. */
  #scratch: Cells = new Float64Array(16);
  #evictions = 0;
  /** The key that had to go for the one that came: at most one does. */
  #evicted: EvictionEvent | undefined;
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
    this.#onEvent = onEvent;
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
    return this.#decide(limit, key, cost, nowMs, true);
  }

  consumeAll(checks: readonly Check[]): Decision[] {
    const nowMs = this.#clock();
    const decisions = checks.map((check) => this.#decide(check.limit, check.key, check.cost, nowMs, false));
    const allowed = checks.every((check, i) => check.shadow === true || (decisions[i] as Decision).allowed);
    for (let i = 0; i < checks.length; i++) {
      const { limit, key, cost } = checks[i] as Check;
      // Committing a rejection writes nothing, or logs it where the policy says so.
      if (allowed || !(decisions[i] as Decision).allowed) decisions[i] = this.#decide(limit, key, cost, nowMs, true);
    }
    return decisions;
  }

  peek(limit: Limit, key: string): Decision {
    return this.#decide(limit, key, 1, this.#clock(), false);
  }

  refund(limit: Limit, key: string, decision: Decision): number {
    const handle = this.#table.get(entryOf(this.#kindOf(limit), key));
    if (handle === undefined) return 0;
    return limit.algorithm.refund(
      limit.policy,
      this.#slabs.cells(handle),
      this.#slabs.at(handle),
      this.#clock(),
      decision.atMs,
      decision.cost,
    );
  }

  reset(limit: Limit, key: string): void {
    const entry = entryOf(this.#kindOf(limit), key);
    const handle = this.#table.get(entry);
    if (handle === undefined) return;
    this.#lastLimit = undefined;
    this.#table.delete(entry);
    this.#slabs.free(handle);
  }

  #decide(limit: Limit, key: string, cost: number, nowMs: number, commit: boolean): Decision {
    const entry = entryOf(this.#kindOf(limit), key);
    const handle = this.#table.get(entry);
    if (handle === undefined) return this.#decideFresh(limit, key, entry, cost, nowMs, commit);
    this.#lastLimit = limit;
    this.#lastKey = key;
    this.#lastHeld = false;
    this.#lieAt(handle);
    if (commit && limit.algorithm.size(limit.policy, this.#lastCells, this.#lastAt) > this.#lastWidth) this.#enlarge(limit, key);
    const decision = limit.algorithm.decide(limit, this.#lastCells, this.#lastAt, nowMs, cost, commit);
    this.#hold(limit, key, this.#lastHandle, decision, nowMs);
    return decision;
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
    const size = limit.algorithm.size(limit.policy, emptyCells, 0);
    if (size > this.#scratch.length) this.#scratch = new Float64Array(size);
    const scratch = this.#scratch;
    const decision = limit.algorithm.decide(limit, scratch, 0, nowMs, cost, commit);
    if (!commit) return decision;
    let used = size;
    while (used > 0 && scratch[used - 1] === 0) used--;
    if (used === 0) return decision;

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
    if (this.#evicted !== undefined) this.#tellEvicted();
    return decision;
  }

  /** Moves the key used last, whose state has grown (a log), to a block with room for one more request. */
  #enlarge(limit: Limit, key: string): void {
    const handle = this.#lastHandle;
    const cells = this.#lastCells;
    const at = this.#lastAt;
    const larger = this.#slabs.allocate(Math.max(limit.algorithm.size(limit.policy, cells, at), 2 * this.#lastWidth));
    this.#slabs.cells(larger).set(cells.subarray(at, at + this.#lastWidth), this.#slabs.at(larger));
    this.#slabs.free(handle);
    this.#table.move(entryOf(this.#kindOf(limit), key), larger);
    this.#lieAt(larger);
  }

  #hold(limit: Limit, key: string, handle: number, decision: Decision, nowMs: number): void {
    if (decision.remaining * 2 > decision.limit) return;
    this.#lastHeld = this.#table.hold(entryOf(this.#kindOf(limit), key), handle, useOf(decision, nowMs));
  }

  #kindOf(limit: Limit): Kind {
    if (limit !== this.#kindLimit) {
      this.#kind = this.#kindsByLimit.get(limit) ?? this.#newKind(limit);
      this.#kindLimit = limit;
    }
    return this.#kind;
  }

  #newKind(limit: Limit): Kind {
    const name = `${limit.name}\n${limit.policy.stateKind}`;
    let kind = this.#kindsByName.get(name);
    if (kind === undefined) {
      // The first kind's keys stand as they are: most stores have no other.
      kind = { prefix: this.#kinds.length === 0 ? "" : `\0${this.#kinds.length}\0`, strictest: limit };
      this.#kinds.push(kind);
      this.#kindsByName.set(name, kind);
    } else if (limit.policy.quota < kind.strictest.policy.quota) {
      kind.strictest = limit;
    }
    this.#kindsByLimit.set(limit, kind);
    return kind;
  }

  #kindOfEntry(entry: string): Kind {
    const id = entry.charCodeAt(0) === 0 ? Number(entry.slice(1, entry.indexOf("\0", 1))) : 0;
    return this.#kinds[id] as Kind;
  }

  #use(entry: string, handle: number): Use | undefined {
    const limit = this.#kindOfEntry(entry).strictest;
    const look = limit.algorithm.decide(limit, this.#slabs.cells(handle), this.#slabs.at(handle), this.#nowMs, 1, false);
    return look.resetAfterMs === 0 ? undefined : useOf(look, this.#nowMs);
  }

  #dropped(entry: string, handle: number, live: boolean): void {
    this.#slabs.free(handle);
    if (!live) return;
    this.#evictions++;
    if (this.#onEvent === undefined) return;
    const key = entry.charCodeAt(0) === 0 ? entry.slice(entry.indexOf("\0", 1) + 1) : entry;
    this.#evicted = { type: "evicted", name: this.#kindOfEntry(entry).strictest.name, key };
  }

  /** Only once the store is whole again: a listener may throw, or ask the store in turn. */
  #tellEvicted(): void {
    const event = this.#evicted as EvictionEvent;
    this.#evicted = undefined;
    this.#onEvent?.(event);
  }
}

/** No cells at all reads as no state. */
const emptyCells: Cells = new Float64Array(3);

/** A key in the table: with its kind before it, except for the first kind's, unless it begins like that itself. */
function entryOf(kind: Kind, key: string): string {
  if (kind.prefix !== "") return kind.prefix + key;
  return key.charCodeAt(0) === 0 ? `\x000\0${key}` : key;
}

function useOf(decision: Decision, nowMs: number): Use {
  return { share: 1 - decision.remaining / decision.limit, resetAtMs: nowMs + decision.resetAfterMs };
}
