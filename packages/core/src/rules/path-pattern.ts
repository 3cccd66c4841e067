import { anySegments, folded, type Reading } from "../requests/path.js";
import { invalidOption, shown, wrongOption } from "../support/errors.js";
import { getOrMake } from "../support/maps.js";

/** A segment of a rule's path: text, `:name` for one segment, or `*` for any number of segments. */
type Segment = string | typeof oneSegment | typeof anySegments;
const oneSegment: unique symbol = Symbol(":name");

/** A rule's path, as written and as matched. */
export interface PathPattern {
  readonly text: string;
  readonly segments: readonly Segment[];
}

/** @throws FloodgateError if the path is invalid, or can never match. */
export function compilePath(where: string, path: unknown): PathPattern {
  if (typeof path !== "string" || !path.startsWith("/")) {
    throw wrongOption(where, "match.path", 'a path that begins with "/"', path, 'path: "/posts/:id"', []);
  }
  // A `?` at the end of a segment is a router pattern, not the start of a query.
  const query = /#|\?(?!\/|$)/.exec(path);
  if (query !== null) {
    throw invalidOption(
      `${where}: \`match.path\` is matched without the query, so ${shown(path)} can never match. Write path: ${shown(path.slice(0, query.index))}.`,
    );
  }
  const segments = path
    .split("/")
    .filter((segment) => segment !== "")
    .map((segment): Segment => {
      if (segment === "*") return anySegments;
      if (/^:[A-Za-z_$][\w$]*$/.test(segment)) return oneSegment;
      const [sign] = routerSigns.exec(segment) ?? [];
      if (sign === undefined) return folded(segment);
      const character = sign.startsWith(":") ? ":" : sign;
      throw invalidOption(
        `${where}: in \`match.path\` a segment is text, a \`:name\` or a \`*\` alone, but ${shown(segment)} in ${shown(path)} has a ${shown(character)}, which routers read as a pattern. Write a whole segment as ":id", any number of segments as "*", or several paths: path: ["/a", "/b"]. The character itself is written %${character.charCodeAt(0).toString(16).toUpperCase()}.`,
      );
    });
  return { text: path, segments };
}

/**
 * The pattern syntax of the routers of Express, Koa and Hono. Taken literally, it would never match. Other characters (`-`, `.`, `~`, `'`,
 * `$`, `!`) are text.
 */
const routerSigns = /^:|:\w|[*?+(){}[\]\\]/;

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
