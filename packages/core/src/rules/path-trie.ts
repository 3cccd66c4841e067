import { any, one, type PathPattern, type Reading, type Segment } from "./path.js";

/** What a pattern has come to so far. */
class Node<T> {
  readonly literals = new Map<string, Node<T>>();
  one: Node<T> | undefined;
  /** After a `*` here: entered at once, for a `*` may stand for nothing, and never left. */
  any: Node<T> | undefined;
  readonly stays: boolean;
  end: T | undefined;
  /** The step of the walk that has reached it: it counts once however it is reached. */
  reachedAt = 0;

  constructor(stays: boolean) {
    this.stays = stays;
  }

  next(segment: Segment): Node<T> {
    if (segment === one) {
      this.one ??= new Node(false);
      return this.one;
    }
    if (segment === any) {
      if (this.stays) return this;
      this.any ??= new Node(true);
      return this.any;
    }
    let node = this.literals.get(segment);
    if (node === undefined) {
      node = new Node(false);
      this.literals.set(segment, node);
    }
    return node;
  }
}

/** All paths of all rules in one tree, so that a request walks its own segments once, however many rules there are. */
export class PathTrie<T> {
  readonly #root = new Node<T>(false);
  #step = 0;

  /** What stands at the end of a pattern, made where nothing does yet. */
  at(pattern: PathPattern, make: () => T): T {
    let node = this.#root;
    for (const segment of pattern.segments) node = node.next(segment);
    node.end ??= make();
    return node.end;
  }

  /** Tells what stands at the end of each pattern that fits. No step is taken twice, so no pattern takes longer than its length. */
  walk(segments: Reading, found: (end: T) => void): void {
    let reached: Node<T>[] = [];
    this.#step++;
    this.#reach(this.#root, reached);
    for (let i = 0; i < segments.length && reached.length > 0; i++) {
      const segment = segments[i] as Reading[number];
      const next: Node<T>[] = [];
      this.#step++;
      if (segment === any) {
        this.#reachBelow(reached, next);
        reached = next;
        continue;
      }
      for (const node of reached) {
        this.#reach(node.literals.get(segment), next);
        this.#reach(node.one, next);
        if (node.stays) this.#reach(node, next);
      }
      reached = next;
    }
    for (const { end } of reached) if (end !== undefined) found(end);
  }

  /** Reaches nodes and all that stands below them: the request has segments here that are not known. */
  #reachBelow(nodes: readonly Node<T>[], reached: Node<T>[]): void {
    for (const node of nodes) this.#reach(node, reached);
    // The list grows while it is walked.
    for (const node of reached) {
      this.#reach(node.one, reached);
      for (const child of node.literals.values()) this.#reach(child, reached);
    }
  }

  #reach(node: Node<T> | undefined, reached: Node<T>[]): void {
    if (node === undefined || node.reachedAt === this.#step) return;
    node.reachedAt = this.#step;
    reached.push(node);
    this.#reach(node.any, reached);
  }
}
