import { isAlias, isMap, isScalar, isSeq, type Node, type Pair, Scalar, type YAMLMap } from "yaml";
import type { Path } from "./problems.js";

/** A document's nodes made plain objects, arrays and values. */
export interface Composed {
  readonly value: unknown;
  readonly mistakes: readonly { readonly offset: number; readonly message: string; readonly path: Path }[];
  /** Where what a path leads to begins in the text (or its last word does), or the last part of the path that is there. */
  offsetOf(path: Path, what: "word" | "value"): number;
}

/** Where a word and its value begin. */
interface Place {
  readonly word: number;
  readonly value: number;
}

/** A value, and of how many it is made, aliases written out. */
interface Made {
  readonly value: unknown;
  readonly size: number;
}

/** Values that may come by aliases; a bomb of a few lines has billions. */
const mostAliased = 100_000;
const deepest = 50;

export function compose(root: Node | null): Composed {
  const composer = new Composer();
  const { value } = composer.make(root, []);
  return {
    value,
    mistakes: composer.mistakes,
    offsetOf: (path, what) => composer.offsetOf(value, path, what, root === null ? 0 : offsetOf(root)),
  };
}

class Composer {
  readonly mistakes: Composed["mistakes"][number][] = [];
  /** What each anchor stands for at this point of the document; undefined while that is being made. */
  readonly #anchors = new Map<string, Made | undefined>();
  readonly #places = new WeakMap<object, Map<string | number, Place>>();
  #aliased = 0;

  make(node: Node | null | undefined, path: Path): Made {
    if (node === null || node === undefined) return { value: null, size: 1 };
    if (isAlias(node)) return this.#fromAlias(node.source, offsetOf(node), path);
    const { anchor } = node as { anchor?: string };
    if (anchor !== undefined) this.#anchors.set(anchor, undefined);
    const made = this.#fromNode(node, path);
    if (anchor !== undefined) this.#anchors.set(anchor, made);
    return made;
  }

  offsetOf(root: unknown, path: Path, what: keyof Place, start: number): number {
    let offset = start;
    let value = root;
    for (const [i, word] of path.entries()) {
      const place = isObject(value) ? this.#places.get(value)?.get(word) : undefined;
      if (place === undefined) return offset;
      offset = i === path.length - 1 ? place[what] : place.value;
      value = (value as Record<string | number, unknown>)[word];
    }
    return offset;
  }

  #fromNode(node: Node, path: Path): Made {
    if (isScalar(node)) return { value: node.value, size: 1 };
    if (path.length > deepest) return this.#mistake(node, path, `This is nested deeper than ${deepest} levels. Rules need six.`);
    if (isMap(node)) return this.#fromMap(node as YAMLMap<Node, Node | null>, path);
    if (!isSeq(node)) return { value: undefined, size: 1 };
    const list: unknown[] = [];
    const places = this.#placesOf(list);
    let size = 1;
    for (const [i, item] of (node.items as (Node | null)[]).entries()) {
      const made = this.make(item, [...path, i]);
      const offset = item === null ? offsetOf(node) : offsetOf(item);
      list.push(made.value);
      places.set(i, { word: offset, value: offset });
      size += made.size;
    }
    return { value: list, size };
  }

  #fromMap(node: YAMLMap<Node, Node | null>, path: Path): Made {
    const map: Record<string, unknown> = {};
    const places = this.#placesOf(map);
    const merged: Record<string, unknown>[] = [];
    let size = 1;
    for (const { key, value } of node.items as Pair<Scalar<string>, Node | null>[]) {
      const word = key.value;
      const at = [...path, word];
      const made = this.make(value, at);
      size += made.size;
      if (word === "<<" && key.type === Scalar.PLAIN) {
        const sources: unknown[] = Array.isArray(made.value) ? made.value : [made.value];
        for (const source of sources) if (isMapValue(source)) merged.push(source);
        // What is undefined has been told of.
        if (sources.some((source) => source !== undefined && !isMapValue(source)))
          this.#mistake(key, at, "`<<` merges a map or a list of maps. Write <<: *defaults.");
      } else if (word === "__proto__") {
        this.#mistake(key, at, "`__proto__` can name nothing.");
      } else if (places.has(word)) {
        this.#mistake(key, at, `\`${word}\` stands here twice. Take one of the two away.`);
      } else {
        map[word] = made.value;
        // A value that was left out has no place of its own.
        places.set(word, { word: offsetOf(key), value: value === null || made.value === null ? offsetOf(key) : offsetOf(value) });
      }
    }
    // What a map says itself goes before what is merged into it, wherever it says so.
    for (const source of merged) {
      for (const [word, place] of this.#placesOf(source)) {
        if (places.has(word)) continue;
        map[word] = source[word];
        places.set(word, place);
      }
    }
    return { value: map, size };
  }

  #fromAlias(name: string, offset: number, path: Path): Made {
    const made = this.#anchors.get(name);
    if (made === undefined) {
      const why = this.#anchors.has(name) ? `stands inside of what &${name} names` : `names nothing: there is no &${name} before it`;
      return this.#mistake(offset, path, `*${name} ${why}.`);
    }
    const told = this.#aliased > mostAliased;
    this.#aliased += made.size;
    if (this.#aliased <= mostAliased) return made;
    const message = `With *${name} the aliases of this text stand for more than ${mostAliased} values. Write out what is meant.`;
    if (!told) this.#mistake(offset, path, message);
    return { value: undefined, size: 1 };
  }

  #mistake(at: Node | number, path: Path, message: string): Made {
    this.mistakes.push({ offset: typeof at === "number" ? at : offsetOf(at), message, path });
    return { value: undefined, size: 1 };
  }

  #placesOf(value: object): Map<string | number, Place> {
    let places = this.#places.get(value);
    if (places === undefined) {
      places = new Map();
      this.#places.set(value, places);
    }
    return places;
  }
}

function offsetOf(node: Node): number {
  return node.range?.[0] ?? 0;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function isMapValue(value: unknown): value is Record<string, unknown> {
  return isObject(value) && !Array.isArray(value);
}
