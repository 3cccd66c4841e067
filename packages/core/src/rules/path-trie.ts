import { anySegments, type Reading } from "../requests/path.js";
import { getOrMake } from "../support/get-or-make.js";
import { oneSegment, type PathPattern, type Segment } from "./path-pattern.js";

/** A prefix of one or more patterns. */
class Node<T> {
  readonly literals = new Map<string, Node<T>>();
  oneSegment: Node<T> | undefined;
  /** The node after a `*` here. A walk reaches it at once, because `*` may match no segment, and stays in it. */
  anySegments: Node<T> | undefined;
  readonly stays: boolean;
  end: T | undefined;
  /** The last step of a walk that reached this node, so that each step counts it once. */
  reachedAt = 0;

  constructor(stays: boolean) {
    this.stays = stays;
  }

  next(segment: Segment): Node<T> {
    if (segment === oneSegment) {
      this.oneSegment ??= new Node(false);
      return this.oneSegment;
    }
    if (segment === anySegments) {
      if (this.stays) return this;
      this.anySegments ??= new Node(true);
      return this.anySegments;
    }
    return getOrMake(this.literals, segment, () => new Node<T>(false));
  }
}

/** A trie of the path patterns of all rules: a request walks its segments once, however many rules there are. */
export class PathTrie<T> {
  readonly #root = new Node<T>(false);
  #step = 0;

  /** The value of a pattern; made if it has none yet. */
  at(pattern: PathPattern, make: () => T): T {
    let node = this.#root;
    for (const segment of pattern.segments) node = node.next(segment);
    node.end ??= make();
    return node.end;
  }

  /** Calls `found` with the value of each pattern that matches. Each step visits a node once, so no pattern backtracks. */
  walk(segments: Reading, found: (end: T) => void): void {
    let reached: Node<T>[] = [];
    this.#step++;
    this.#reach(this.#root, reached);
    for (let i = 0; i < segments.length && reached.length > 0; i++) {
      const segment = segments[i] as Reading[number];
      const next: Node<T>[] = [];
      this.#step++;
      if (segment === anySegments) {
        this.#reachBelow(reached, next);
        reached = next;
        continue;
      }
      const isOptional = typeof segment === "object";
      const text = isOptional ? segment.optional : segment;
      if (isOptional) for (const node of reached) this.#reach(node, next);
      for (const node of reached) {
        this.#reach(node.literals.get(text), next);
        this.#reach(node.oneSegment, next);
        if (node.stays) this.#reach(node, next);
      }
      reached = next;
    }
    for (const { end } of reached) if (end !== undefined) found(end);
  }

  /** Reaches these nodes and all their descendants, for segments of the request that are unknown. */
  #reachBelow(nodes: readonly Node<T>[], reached: Node<T>[]): void {
    for (const node of nodes) this.#reach(node, reached);
    // The list grows during the loop.
    for (const node of reached) {
      this.#reach(node.oneSegment, reached);
      for (const child of node.literals.values()) this.#reach(child, reached);
    }
  }

  #reach(node: Node<T> | undefined, reached: Node<T>[]): void {
    if (node === undefined || node.reachedAt === this.#step) return;
    node.reachedAt = this.#step;
    reached.push(node);
    this.#reach(node.anySegments, reached);
  }
}
