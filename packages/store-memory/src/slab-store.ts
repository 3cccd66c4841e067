import type { Decision, EventListener, Store } from "@floodgate/core";
import {
  type Blocked,
  type BlockKind,
  beganState,
  blockCells,
  blockedDecision,
  blockedMs,
  blockIn,
  blocksOf,
  type Cells,
  type Charge,
  type Check,
  type Clock,
  type DecideOne,
  decideAll,
  type Inspection,
  inState,
  inspectIn,
  type Limit,
  liftBanIn,
  settleIn,
} from "@floodgate/core/store";
import { Evictions } from "./evictions.js";
import { KeyTable, type Use } from "./key-table.js";
import type { Kind } from "./kinds.js";
import type { Slots } from "./slots.js";
import { classOf } from "./use-lists.js";

/** A store in this process, which answers at once. */
export interface MemoryStore extends Store<"sync"> {
  /** Number of keys in memory, including expired ones that were not removed yet. */
  readonly size: number;
  /** Number of live keys that a full store has evicted. Expired keys do not count. */
  readonly evictions: number;
}

/** Looked up once: an export of another package is read through a getter. */
const stateOf: typeof inState = inState;
const begins: typeof beganState = beganState;

/** The memory store, whose options are checked. */
export class SlabStore implements MemoryStore {
  readonly mode = "sync";
  readonly #clock: Clock;
  readonly #table: KeyTable;
  readonly #slots: Slots;
  /** Zeros, on which a key without a state is decided. */
  #scratch: Cells = new Float64Array(16);
  readonly #evictions: Evictions;
  readonly #use: Use = { use: 0, resetAtMs: 0 };
  /** The time of the current step. */
  #nowMs = 0;

  /** The blocks and bans of each name that has had one, kept among the other keys; and how many of them there are. */
  readonly #blocks = new Map<string, Kind>();
  #blocked = 0;

  // The key used last is found without the table. Without `#lastLimit` no key is known. It is never a blocked key.
  #lastLimit: Limit | undefined;
  #lastKey = "";
  #lastSlot = 0;
  #lastCells: Cells = this.#scratch;
  #lastAt = 0;
  #lastState = 0;
  #lastWidth = 0;
  /** What the newest decision of that key left, and its reset (or `placed`). The key is placed by them when another key's turn comes. */
  readonly #newest = new Float64Array([0, placed]);
  /** Made once: a request under several limits makes no function. */
  readonly #decideOne: DecideOne = (limit, key, cost, nowMs, commit) => this.#decide(limit, key, cost, nowMs, commit);
  /** Whether the keys of the current request are withdrawn from the table's order. They are placed at its end. */
  #withdrawn = false;

  constructor(maxKeys: number, clock: Clock, onEvent: EventListener | undefined) {
    this.#clock = clock;
    this.#evictions = new Evictions(onEvent);
    this.#table = new KeyTable(
      maxKeys,
      (kind, slot) => this.#assess(kind, slot),
      (kind, key, live) => this.#dropped(kind, key, live),
    );
    this.#slots = this.#table.slots;
  }

  get size(): number {
    return this.#table.size;
  }

  get evictions(): number {
    return this.#evictions.count;
  }

  consume(limit: Limit, key: string, cost: number): Decision {
    const nowMs = this.#clock();
    if (
      key === this.#lastKey &&
      limit === this.#lastLimit &&
      limit.algorithm.size(limit.policy, this.#lastCells, this.#lastAt) <= this.#lastWidth
    ) {
      const decision = limit.algorithm.decide(limit, this.#lastCells, this.#lastAt, nowMs, cost, true);
      this.#newest[REMAINING] = decision.remaining;
      this.#newest[RESET] = nowMs + decision.resetAfterMs;
      if (decision.remaining === decision.limit - cost || cost > decision.limit) this.#numberAnew(limit, decision, nowMs);
      return stateOf(decision, this.#lastState);
    }
    const decision = this.#decide(limit, key, cost, nowMs, true);
    this.#evictions.tell();
    return decision;
  }

  consumeAll(checks: readonly Check[]): Decision[] {
    const nowMs = this.#clock();
    this.#nowMs = nowMs;
    if (!this.#table.hasRoomFor(checks.length)) this.#withdraw(checks);
    const decisions = decideAll(checks, nowMs, this.#decideOne);
    if (this.#withdrawn) this.#placeAgain(checks, decisions, nowMs);
    this.#evictions.tell();
    return decisions;
  }

  peek(limit: Limit, key: string): Decision {
    return this.#decide(limit, key, 1, this.#clock(), false);
  }

  settle(limit: Limit, key: string, charge: Charge, cost: number): number {
    const units = this.#settle(limit, key, charge, cost);
    if (this.#blocked > 0) this.#leave();
    return units;
  }

  #settle(limit: Limit, key: string, charge: Charge, cost: number): number {
    const { algorithm } = limit;
    const nowMs = this.#clock();
    this.#nowMs = nowMs;
    const slot = this.#table.kindOf(limit).slots.get(key);
    if (slot === undefined) {
      const size = this.#makeScratch(limit);
      const units = settleIn(limit, this.#scratch, 0, nowMs, charge, cost, undefined);
      if (units > 0) this.#keep(limit, key, size, algorithm.decide(limit, this.#scratch, 0, nowMs, 1, false), nowMs);
      this.#evictions.tell();
      return units;
    }
    this.#turnTo(limit, key, slot);
    const units = settleIn(limit, this.#lastCells, this.#lastAt, nowMs, charge, cost, this.#lastState);
    // A refund may bring the reset nearer, which must not go unnoticed.
    this.#table.remark(slot);
    if (units < 0 && this.#isEmpty()) this.#forget(this.#table.kindOf(limit), key);
    else if (units !== 0) this.#note(algorithm.decide(limit, this.#lastCells, this.#lastAt, nowMs, 1, false), nowMs);
    return units;
  }

  reset(limit: Limit, key: string): void {
    this.#forget(this.#table.kindOf(limit), key);
    const blocks = this.#blocks.get(limit.name);
    const slot = blocks?.slots.get(key);
    if (blocks === undefined || slot === undefined) return;
    liftBanIn(this.#slots.cells(slot), this.#slots.at(slot));
    this.#placeBlock(blocks, key, slot, this.#clock());
  }

  block(name: string, key: string, forMs: number, kind: BlockKind): Blocked {
    const nowMs = this.#clock();
    this.#nowMs = nowMs;
    const blocks = this.#blocks.get(name) ?? this.#table.kindOf(blocksOf(name));
    this.#blocks.set(name, blocks);
    const slot = blocks.slots.get(key);
    if (slot === undefined) {
      const limit = blocks.strictest;
      const blocked = blockIn(this.#scratch, 0, nowMs, forMs, kind);
      this.#blocked++;
      this.#keep(limit, key, blockCells, limit.algorithm.decide(limit, this.#scratch, 0, nowMs, 1, false), nowMs);
      this.#evictions.tell();
      return blocked;
    }
    const blocked = blockIn(this.#slots.cells(slot), this.#slots.at(slot), nowMs, forMs, kind);
    this.#placeBlock(blocks, key, slot, nowMs);
    return blocked;
  }

  unblock(name: string, key: string): void {
    const blocks = this.#blocks.get(name);
    if (blocks !== undefined) this.#forget(blocks, key);
  }

  keyState(limit: Limit, key: string): Inspection {
    this.#makeScratch(limit);
    const [cells, at] = this.#slots.locate(this.#table.find(limit, key)) ?? [this.#scratch, 0];
    const [blocks, blocksAt] = this.#slots.locate(this.#blocks.get(limit.name)?.slots.get(key)) ?? [];
    return inspectIn(limit, cells, at, this.#clock(), blocks, blocksAt);
  }

  /** How long a key is still turned away under a name; 0 if it is not. A block that has ended is forgotten. */
  #blockedMs(name: string, key: string, nowMs: number): number {
    const blocks = this.#blocks.get(name);
    const slot = blocks?.slots.get(key);
    if (blocks === undefined || slot === undefined) return 0;
    const leftMs = blockedMs(this.#slots.cells(slot), this.#slots.at(slot), nowMs);
    if (leftMs === 0) this.#forget(blocks, key);
    return leftMs;
  }

  /** Places a block that has changed by its end, or forgets one that has ended. */
  #placeBlock(blocks: Kind, key: string, slot: number, nowMs: number): void {
    const limit = blocks.strictest;
    if (this.#blockedMs(limit.name, key, nowMs) === 0) return;
    this.#leave();
    this.#table.remark(slot);
    const { remaining, resetAfterMs } = limit.algorithm.decide(limit, this.#slots.cells(slot), this.#slots.at(slot), nowMs, 1, false);
    this.#place(limit, slot, remaining, nowMs + resetAfterMs);
  }

  /** Deletes a key and its state. */
  #forget(kind: Kind, key: string): void {
    const slot = kind.slots.get(key);
    if (slot === undefined) return;
    this.#leave();
    this.#table.delete(slot);
    if (this.#blocks.get(kind.strictest.name) === kind) this.#blocked--;
  }

  #decide(limit: Limit, key: string, cost: number, nowMs: number, commit: boolean): Decision {
    if (this.#blocked > 0) {
      const leftMs = this.#blockedMs(limit.name, key, nowMs);
      if (leftMs > 0) {
        const decision = this.#decideUnblocked(limit, key, cost, nowMs, false);
        this.#leave();
        return blockedDecision(decision, leftMs);
      }
    }
    return this.#decideUnblocked(limit, key, cost, nowMs, commit);
  }

  #decideUnblocked(limit: Limit, key: string, cost: number, nowMs: number, commit: boolean): Decision {
    this.#nowMs = nowMs;
    const slot = this.#table.kindOf(limit).slots.get(key);
    if (slot === undefined) return this.#decideFresh(limit, key, cost, nowMs, commit);
    this.#turnTo(limit, key, slot);
    if (!commit) return stateOf(limit.algorithm.decide(limit, this.#lastCells, this.#lastAt, nowMs, cost, false), this.#lastState);
    if (limit.algorithm.size(limit.policy, this.#lastCells, this.#lastAt) > this.#lastWidth) this.#enlarge(limit);
    const decision = limit.algorithm.decide(limit, this.#lastCells, this.#lastAt, nowMs, cost, true);
    this.#note(decision, nowMs);
    if (decision.remaining === decision.limit - cost || cost > decision.limit) this.#numberAnew(limit, decision, nowMs);
    return stateOf(decision, this.#lastState);
  }

  /** Gives the state of the key used last another number if the decision has begun it: the one before it had ended. */
  #numberAnew(limit: Limit, decision: Decision, nowMs: number): void {
    if (!begins(limit, this.#lastCells, this.#lastAt, nowMs, decision)) return;
    this.#lastState = this.#table.beginState(this.#lastSlot);
  }

  /** Whether all cells of the key used last are 0. */
  #isEmpty(): boolean {
    for (let i = this.#lastAt; i < this.#lastAt + this.#lastWidth; i++) if (this.#lastCells[i] !== 0) return false;
    return true;
  }

  #note({ remaining, resetAfterMs }: Decision, nowMs: number): void {
    this.#newest[REMAINING] = remaining;
    this.#newest[RESET] = nowMs + resetAfterMs;
  }

  /** Makes this the key used last. */
  #turnTo(limit: Limit, key: string, slot: number): void {
    this.#leave();
    this.#lastLimit = limit;
    this.#lastKey = key;
    this.#lastSlot = slot;
    this.#lastState = this.#table.state(slot);
    this.#findState();
  }

  /** Places the key used last, and forgets which it was. */
  #leave(): void {
    const resetAtMs = this.#newest[RESET] as number;
    if (resetAtMs !== placed) {
      this.#newest[RESET] = placed;
      this.#place(this.#lastLimit as Limit, this.#lastSlot, this.#newest[REMAINING] as number, resetAtMs);
    }
    this.#lastLimit = undefined;
  }

  /** Places a key by what was decided last. */
  #place(limit: Limit, slot: number, remaining: number, resetAtMs: number): void {
    if (this.#withdrawn) return;
    const kind = this.#table.kindOf(limit);
    const { quota } = limit.policy;
    if (kind.strictest !== kind.roomiest && (quota !== kind.strictest.policy.quota || resetAtMs <= this.#nowMs)) {
      // Another plan may see more of its limit used.
      const seen = this.#assess(kind, slot);
      if (seen !== undefined) {
        this.#table.place(slot, seen.use, seen.resetAtMs);
        return;
      }
    }
    this.#table.place(slot, classOf(quota - remaining, quota), resetAtMs);
  }

  /** Finds where the state of the key used last lies. */
  #findState(): void {
    this.#lastCells = this.#slots.cells(this.#lastSlot);
    this.#lastAt = this.#slots.at(this.#lastSlot);
    this.#lastWidth = this.#slots.width(this.#lastSlot);
  }

  /** If a request may add keys, withdraws those of its keys that exist, so that adding one evicts none of the others. */
  #withdraw(checks: readonly Check[]): void {
    const slots = checks.map(({ limit, key }) => this.#table.kindOf(limit).slots.get(key));
    if (!slots.includes(undefined)) return;
    this.#leave();
    for (const slot of slots) if (slot !== undefined) this.#table.withdraw(slot);
    this.#withdrawn = true;
  }

  #placeAgain(checks: readonly Check[], decisions: readonly Decision[], nowMs: number): void {
    this.#leave();
    this.#withdrawn = false;
    for (const [i, { limit, key }] of checks.entries()) {
      const slot = this.#table.kindOf(limit).slots.get(key);
      const { remaining, resetAfterMs } = decisions[i] as Decision;
      if (slot !== undefined) this.#place(limit, slot, remaining, nowMs + resetAfterMs);
    }
    this.#table.trim(nowMs);
  }

  /** A key without a state is tried on zeros, and remembered only if that left something to remember. */
  #decideFresh(limit: Limit, key: string, cost: number, nowMs: number, commit: boolean): Decision {
    const size = this.#makeScratch(limit);
    const decision = limit.algorithm.decide(limit, this.#scratch, 0, nowMs, cost, commit);
    if (!commit) return decision;
    const slot = this.#keep(limit, key, size, decision, nowMs);
    return slot === undefined ? decision : stateOf(decision, this.#table.state(slot));
  }

  /** Enlarges the zeros if a limit's state needs more, and answers how many cells it needs. */
  #makeScratch(limit: Limit): number {
    const size = limit.algorithm.size(limit.policy, emptyCells, 0);
    if (size > this.#scratch.length) this.#scratch = new Float64Array(size);
    return size;
  }

  /** Moves a state from the zeros to a slot of its own. Answers the key's slot; undefined if the zeros are still all zero. */
  #keep(limit: Limit, key: string, size: number, { remaining, resetAfterMs }: Decision, nowMs: number): number | undefined {
    const scratch = this.#scratch;
    let used = size;
    while (used > 0 && scratch[used - 1] === 0) used--;
    if (used === 0) return undefined;

    this.#leave();
    const slot = this.#table.add(this.#table.kindOf(limit), key, size, nowMs);
    const cells = this.#slots.cells(slot);
    const at = this.#slots.at(slot);
    for (let i = 0; i < used; i++) {
      cells[at + i] = scratch[i] as number;
      scratch[i] = 0;
    }
    this.#place(limit, slot, remaining, nowMs + resetAfterMs);
    return slot;
  }

  /** Moves the state of the key used last, which has grown (a log), to where it has room for one more request. */
  #enlarge(limit: Limit): void {
    const size = limit.algorithm.size(limit.policy, this.#lastCells, this.#lastAt);
    this.#slots.enlarge(this.#lastSlot, Math.max(size, 2 * this.#lastWidth));
    this.#findState();
  }

  /** How much of its limit a key has used; undefined if no plan has anything to remember. */
  #assess({ strictest, roomiest }: Kind, slot: number): Use | undefined {
    const least = this.#look(strictest, slot);
    // What a small bucket never held, a large one may lack.
    const most = roomiest === strictest ? least : this.#look(roomiest, slot);
    const { limit, remaining, resetAfterMs } = least.resetAfterMs === 0 ? most : least;
    if (resetAfterMs === 0) return undefined;
    this.#use.use = classOf(limit - remaining, limit);
    this.#use.resetAtMs = this.#nowMs + Math.max(resetAfterMs, most.resetAfterMs);
    return this.#use;
  }

  #look(limit: Limit, slot: number): Decision {
    return limit.algorithm.decide(limit, this.#slots.cells(slot), this.#slots.at(slot), this.#nowMs, 1, false);
  }

  #dropped(kind: Kind, key: string, live: boolean): void {
    if (this.#blocks.get(kind.strictest.name) === kind) this.#blocked--;
    if (live) this.#evictions.add(kind.strictest.name, key);
  }
}

/** Indexes of `#newest`, and the value of its reset once the key has been placed. */
const REMAINING = 0;
const RESET = 1;
const placed = -1;

/** Reads as no state. */
const emptyCells: Cells = new Float64Array(3);
