import { isAlias, isMap, isScalar, isSeq, type Node, type Pair, Scalar, type YAMLMap } from "yaml";
import type { Path } from "./rules-error.js";

/** A document as plain objects, arrays and scalars. */
export interface YamlValue {
  readonly value: unknown;
  readonly mistakes: readonly { readonly offset: number; readonly message: string; readonly path: Path }[];
  /** Offset of the value or key at `path`, else of its nearest existing ancestor. */
  offsetOf(path: Path, what: "key" | "value"): number;
}

/** The offsets of a key and its value. */
interface Offsets {
  readonly key: number;
  readonly value: number;
}

/** A value and the number of values in it, with aliases expanded. */
interface Sized {
  readonly value: unknown;
  readonly size: number;
}

/** Maximum number of values that aliases may expand to. A "YAML bomb" of a few lines expands to billions. */
const maxAliased = 100_000;
const maxDepth = 50;

/** Converts a document's nodes to plain values, and remembers where each stands in the text. */
export function toValue(root: Node | null): YamlValue {
  const converter = new Converter();
  const { value } = converter.convert(root, []);
  return {
    value,
    mistakes: converter.mistakes,
    offsetOf: (path, what) => converter.offsetOf(value, path, what, startOf(root)),
  };
}

class Converter {
  readonly mistakes: YamlValue["mistakes"][number][] = [];
  /** The value of each anchor so far; undefined while the value is being converted. */
  readonly #anchors = new Map<string, Sized | undefined>();
  readonly #offsets = new WeakMap<object, Map<string | number, Offsets>>();
  #aliased = 0;

  convert(node: Node | null | undefined, path: Path): Sized {
    if (node === null || node === undefined) return { value: null, size: 1 };
    if (isAlias(node)) return this.#fromAlias(node.source, startOf(node), path);
    const { anchor } = node as { anchor?: string };
    if (anchor !== undefined) this.#anchors.set(anchor, undefined);
    const converted = this.#fromNode(node, path);
    if (anchor !== undefined) this.#anchors.set(anchor, converted);
    return converted;
  }

  offsetOf(root: unknown, path: Path, what: keyof Offsets, start: number): number {
    let offset = start;
    let value = root;
    for (const key of path) {
      const offsets = this.#offsets.get(value as object)?.get(key);
      if (offsets === undefined) return offset;
      offset = offsets[what];
      value = (value as Record<string | number, unknown>)[key];
    }
    return offset;
  }

  #fromNode(node: Node, path: Path): Sized {
    if (isScalar(node)) {
      this.#checkPlain(node, path);
      return { value: node.value, size: 1 };
    }
    if (path.length > maxDepth) return this.#mistake(node, path, `This is nested deeper than ${maxDepth} levels. Rules need six.`);
    if (isMap(node)) return this.#fromMap(node as YAMLMap<Node, Node | null>, path);
    if (!isSeq(node)) return { value: undefined, size: 1 };
    const list: unknown[] = [];
    const offsets = this.#offsetsIn(list);
    let size = 1;
    for (const [i, item] of (node.items as (Node | null)[]).entries()) {
      const converted = this.convert(item, [...path, i]);
      const offset = startOf(item ?? node);
      list.push(converted.value);
      offsets.set(i, { key: offset, value: offset });
      size += converted.size;
    }
    return { value: list, size };
  }

  #fromMap(node: YAMLMap<Node, Node | null>, path: Path): Sized {
    const map: Record<string, unknown> = {};
    const offsets = this.#offsetsIn(map);
    const merged: Record<string, unknown>[] = [];
    let size = 1;
    for (const { key, value } of node.items as Pair<Scalar<string>, Node | null>[]) {
      const name = key.value;
      const at = [...path, name];
      this.#checkPlain(key, at);
      const converted = this.convert(value, at);
      size += converted.size;
      if (name === "<<" && key.type === Scalar.PLAIN) {
        const sources: unknown[] = Array.isArray(converted.value) ? converted.value : [converted.value];
        for (const source of sources) if (isMapValue(source)) merged.push(source);
        // An undefined source is a mistake that is listed already.
        if (sources.some((source) => source !== undefined && !isMapValue(source)))
          this.#mistake(key, at, "`<<` merges a map or a list of maps. Write <<: *defaults.");
      } else if (name === "__proto__") {
        this.#mistake(key, at, "`__proto__` is not a valid name.");
      } else if (offsets.has(name)) {
        this.#mistake(key, at, `\`${name}\` is set twice here. Remove one of the two.`);
      } else {
        map[name] = converted.value;
        // An omitted value has no offset of its own.
        offsets.set(name, { key: startOf(key), value: startOf(value?.range?.[0] === value?.range?.[1] ? key : value) });
      }
    }
    // The map's own keys win over merged ones, even if they come later.
    for (const source of merged) {
      for (const [name, offset] of this.#offsetsIn(source)) {
        if (offsets.has(name)) continue;
        map[name] = source[name];
        offsets.set(name, offset);
      }
    }
    return { value: map, size };
  }

  #fromAlias(name: string, offset: number, path: Path): Sized {
    const anchored = this.#anchors.get(name);
    if (anchored === undefined) {
      const why = this.#anchors.has(name) ? "contains itself" : "has no anchor before it. Put a text that begins with * in quotes";
      return this.#mistake(offset, path, `*${name} ${why}.`);
    }
    const reported = this.#aliased > maxAliased;
    this.#aliased += anchored.size;
    if (this.#aliased <= maxAliased) return anchored;
    const message = `With *${name}, the aliases expand to more than ${maxAliased} values. Write the values out.`;
    if (!reported) this.#mistake(offset, path, message);
    return { value: undefined, size: 1 };
  }

  #checkPlain(node: Scalar, path: Path): void {
    const at = node.type === Scalar.PLAIN ? (node.source ?? "").search(invisible) : -1;
    if (at >= 0) this.#mistake(startOf(node as Node) + at, path, invisibleHere);
  }

  #mistake(at: Node | number, path: Path, message: string): Sized {
    this.mistakes.push({ offset: typeof at === "number" ? at : startOf(at), message, path });
    return { value: undefined, size: 1 };
  }

  #offsetsIn(value: object): Map<string | number, Offsets> {
    let offsets = this.#offsets.get(value);
    if (offsets === undefined) {
      offsets = new Map();
      this.#offsets.set(value, offsets);
    }
    return offsets;
  }
}

export const invisibleHere = "A no-break space, or another invisible character, stands here. Write a space.";

/** These look like the end of a line, or like nothing. YAML and JSON allow them in quotes. */
const invisible = /[\u007f\u2028\u2029]/;

function startOf(node: Node | null): number {
  return node?.range?.[0] ?? 0;
}

function isMapValue(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
