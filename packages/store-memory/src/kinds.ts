import type { Limit } from "@floodgate/core/store";
import { KeyMap } from "./key-map.js";
import { MinHeap, nowhere } from "./min-heap.js";

/** The limits that share a count (same name, same `stateKind`), and their keys. */
export class Kind {
  readonly id: number;
  /** The limits with the smallest and the largest quota. The smallest one judges a key's use; the largest, if the smallest sees none. */
  strictest: Limit;
  roomiest: Limit;
  /** The slots of its keys. */
  readonly slots: KeyMap;
  /** The slots of its keys, except those of the current request, by the time of their reset. */
  readonly byReset: MinHeap;
  /** The reset by which the kinds are ranked. */
  firstResetMs = 0;

  constructor(id: number, limit: Limit, maxKeys: number, moved: (slot: number, place: number) => void) {
    this.id = id;
    this.strictest = limit;
    this.roomiest = limit;
    this.slots = new KeyMap(maxKeys);
    this.byReset = new MinHeap(moved);
  }
}

/** The kinds of a store's limits: by limit, by number of keys and by first reset. */
export class Kinds {
  readonly #maxKeys: number;
  readonly #moved: (slot: number, place: number) => void;
  readonly #kinds: Kind[] = [];
  readonly #byName = new Map<string, Kind>();
  readonly #byLimit = new WeakMap<Limit, Kind>();
  /** The limit of the last lookup: most requests use the same one. */
  #lastLimit: Limit | undefined;
  #lastKind: Kind | undefined;

  readonly #bySize: Ranking = new Ranking();
  readonly #byReset: Ranking = new Ranking();

  /** `moved` is called with each new place of a slot in its kind's `byReset`. */
  constructor(maxKeys: number, moved: (slot: number, place: number) => void) {
    this.#maxKeys = maxKeys;
    this.#moved = moved;
  }

  of(limit: Limit): Kind {
    if (limit === this.#lastLimit) return this.#lastKind as Kind;
    const kind = this.#byLimit.get(limit) ?? this.#add(limit);
    this.#lastLimit = limit;
    this.#lastKind = kind;
    return kind;
  }

  /** The kind of a limit if a limit of that kind was used before. Adds nothing. */
  find(limit: Limit): Kind | undefined {
    return this.#byName.get(nameOf(limit));
  }

  at(id: number): Kind {
    return this.#kinds[id] as Kind;
  }

  /** The kind with the most keys. */
  largest(): Kind {
    return this.at(this.#bySize.first);
  }

  /** The kind with the key that is reset first. */
  nearest(): Kind {
    return this.at(this.#byReset.first);
  }

  /** To be called when a kind's `byReset` has more keys, or fewer. */
  sizeChanged({ id, byReset }: Kind): void {
    this.#bySize.rank(id, -byReset.size);
  }

  /** To be called when the first key of a kind's `byReset` may be another, or have another reset. */
  resetChanged(kind: Kind): void {
    const { lowest } = kind.byReset;
    if (lowest === kind.firstResetMs) return;
    kind.firstResetMs = lowest;
    this.#byReset.rank(kind.id, lowest);
  }

  #add(limit: Limit): Kind {
    const name = nameOf(limit);
    let kind = this.#byName.get(name);
    if (kind === undefined) {
      kind = new Kind(this.#kinds.length, limit, this.#maxKeys, this.#moved);
      this.#kinds.push(kind);
      this.#byName.set(name, kind);
      this.sizeChanged(kind);
      this.resetChanged(kind);
    } else if (limit.policy.quota < kind.strictest.policy.quota) {
      kind.strictest = limit;
    } else if (limit.policy.quota > kind.roomiest.policy.quota) {
      kind.roomiest = limit;
    }
    this.#byLimit.set(limit, kind);
    return kind;
  }
}

/** Unique, because names and state kinds contain no line breaks. */
function nameOf({ name, policy }: Limit): string {
  return `${name}\n${policy.stateKind}`;
}

/** Ids 0, 1, 2, … by a rank that changes, the lowest first. */
class Ranking {
  readonly #places: number[] = [];
  readonly #heap: MinHeap = new MinHeap((id, place) => {
    this.#places[id] = place;
  });

  get first(): number {
    return this.#heap.first;
  }

  rank(id: number, rank: number): void {
    const place = this.#places[id] ?? nowhere;
    if (place === nowhere) this.#heap.add(id, rank);
    else this.#heap.change(place, rank);
  }
}
