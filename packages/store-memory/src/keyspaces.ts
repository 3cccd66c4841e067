import { blocksOf, type Cells, type Limit } from "@floodgate/core/store";
import { KeyMap } from "./key-map.js";
import { MinHeap } from "./min-heap.js";

/** Reads as no state. */
export const noCells: Cells = new Float64Array(4);

/** The keys of the limits that share a count: those with the same name and the same `stateKind`. */
export interface Keyspace {
  readonly id: number;
  /** The plans with the smallest and the largest quota. A key counts as the smallest one sees it; or the largest, if the smallest sees no use. */
  smallest: Limit;
  largest: Limit;
  /** The plan whose bucket takes longest to fill. If the clock steps back, a state counts for longest under this plan. */
  slowest: Limit;
  /** The cells of a new state. */
  readonly size: number;
  /** Whether a state may need more cells with each request. */
  readonly grows: boolean;
  /** The slots of its keys. */
  readonly slots: KeyMap;
  /** The slots of its blocked keys, by reset. */
  readonly blocked: MinHeap;
  /** The blocks and bans of its name, once there is one. */
  blocks: Keyspace | undefined;
}

/** How many limits are found without a lookup: most requests pass the same few. */
const maxRecent = 8;
/** So many keyspaces are kept, even if they have no keys. Of more, a new one takes the place of one without keys: its limit may be closed. */
const kept = 1000;

/** The keyspaces of a store. */
export class Keyspaces {
  readonly all: Keyspace[] = [];
  readonly #maxKeys: number;
  readonly #moved: (slot: number, place: number) => void;
  readonly #byName = new Map<string, Keyspace>();
  readonly #byLimit = new WeakMap<Limit, Keyspace>();
  readonly #recentLimits: Limit[] = [];
  readonly #recent: Keyspace[] = [];
  /** Whose turn it is: of the recent limits to be replaced, and of the keyspaces to be looked at. */
  #turn = 0;

  /** `moved` is called with each new place of a slot among the blocked keys. */
  constructor(maxKeys: number, moved: (slot: number, place: number) => void) {
    this.#maxKeys = maxKeys;
    this.#moved = moved;
  }

  of(limit: Limit): Keyspace {
    const limits = this.#recentLimits;
    for (let i = 0; i < limits.length; i++) if (limits[i] === limit) return this.#recent[i] as Keyspace;
    const known = this.#byLimit.get(limit);
    const found = known !== undefined && this.all[known.id] === known ? known : this.#add(limit);
    const oldest = this.#turn++ % maxRecent;
    limits[oldest] = limit;
    this.#recent[oldest] = found;
    return found;
  }

  /** The keyspace of a limit if one was used before. Adds nothing. */
  find(limit: Limit): Keyspace | undefined {
    return this.#byName.get(nameOf(limit));
  }

  /** The same for the blocks and bans of a name. */
  findBlocks(name: string): Keyspace | undefined {
    return this.find(blocksOf(name));
  }

  addBlocks(name: string): Keyspace {
    const blocks = this.#add(blocksOf(name));
    for (const keyspace of this.all) if (keyspace.smallest.name === name) keyspace.blocks = blocks;
    return blocks;
  }

  #add(limit: Limit): Keyspace {
    let keyspace = this.find(limit);
    if (keyspace === undefined) {
      keyspace = {
        id: this.#place(),
        smallest: limit,
        largest: limit,
        slowest: limit,
        size: limit.algorithm.size(limit.policy, noCells, 0),
        grows: limit.algorithm.grows === true,
        slots: new KeyMap(this.#maxKeys),
        blocked: new MinHeap(this.#moved),
        blocks: this.findBlocks(limit.name),
      };
      this.all[keyspace.id] = keyspace;
      this.#byName.set(nameOf(limit), keyspace);
    }
    if (compare(limit, keyspace.smallest) < 0) keyspace.smallest = limit;
    if (compare(limit, keyspace.largest) > 0) keyspace.largest = limit;
    if (limit.policy.spanMs > keyspace.slowest.policy.spanMs) keyspace.slowest = limit;
    this.#byLimit.set(limit, keyspace);
    return keyspace;
  }

  /** The id of a new keyspace. */
  #place(): number {
    const { length } = this.all;
    // Some looks for each new one, so that they hardly grow beyond twice those with keys.
    for (let i = 0; length >= kept && i < 8; i++) {
      const { id, slots, smallest } = this.all[this.#turn++ % length] as Keyspace;
      if (!slots.isEmpty) continue;
      this.#byName.delete(nameOf(smallest));
      this.#recentLimits.length = 0;
      return id;
    }
    return length;
  }
}

/** Orders plans by quota. Of two with the same quota, the one whose bucket takes longer to fill comes first. */
function compare({ policy: a }: Limit, { policy: b }: Limit): number {
  return a.quota - b.quota || b.spanMs - a.spanMs;
}

/** Unique, because names and state kinds contain no line breaks. */
function nameOf({ name, policy }: Limit): string {
  return `${name}\n${policy.stateKind}`;
}
