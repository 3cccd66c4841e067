import type { Limit } from "@floodgate/core";

/** The limits that share a count: those of one name whose policies share a `stateKind`. */
export interface Kind {
  readonly prefix: string;
  /** Those with the smallest and the largest quota: by both a key's use is judged, so that plans cannot hide a blocked key. */
  strictest: Limit;
  roomiest: Limit;
}

const noKind: Kind = { prefix: "", strictest: undefined as never, roomiest: undefined as never };

/** The kinds of a store's limits, and its keys with their kind before them. */
export class Kinds {
  readonly #kinds: Kind[] = [];
  readonly #byName = new Map<string, Kind>();
  readonly #byLimit = new WeakMap<Limit, Kind>();
  /** The limit asked for last and its kind: most requests ask for the same. */
  #limit: Limit | undefined;
  #kind: Kind = noKind;

  /** A limit's key in the table: with its kind before it, except for the first kind's, unless it begins like that itself. */
  entry(limit: Limit, key: string): string {
    if (limit !== this.#limit) {
      this.#kind = this.#byLimit.get(limit) ?? this.#add(limit);
      this.#limit = limit;
    }
    const { prefix } = this.#kind;
    if (prefix !== "") return prefix + key;
    return key.charCodeAt(0) === 0 ? `\x000\0${key}` : key;
  }

  /** The kind that a key in the table is of. */
  of(entry: string): Kind {
    const id = entry.charCodeAt(0) === 0 ? Number(entry.slice(1, entry.indexOf("\0", 1))) : 0;
    return this.#kinds[id] as Kind;
  }

  #add(limit: Limit): Kind {
    const name = `${limit.name}\n${limit.policy.stateKind}`;
    let kind = this.#byName.get(name);
    if (kind === undefined) {
      // The first kind's keys stand as they are: most stores have no other.
      kind = { prefix: this.#kinds.length === 0 ? "" : `\0${this.#kinds.length}\0`, strictest: limit, roomiest: limit };
      this.#kinds.push(kind);
      this.#byName.set(name, kind);
    } else if (limit.policy.quota < kind.strictest.policy.quota) {
      kind.strictest = limit;
    } else if (limit.policy.quota > kind.roomiest.policy.quota) {
      kind.roomiest = limit;
    }
    this.#byLimit.set(limit, kind);
    return kind;
  }
}

/** A key as it was before its kind was put before it. */
export function keyOf(entry: string): string {
  return entry.charCodeAt(0) === 0 ? entry.slice(entry.indexOf("\0", 1) + 1) : entry;
}
