import { anySegments, type Reading, type Readings } from "../requests/path.js";
import { getOrMake } from "../support/maps.js";

/** The parts of a request that rules match. */
export interface RequestParts {
  /** In upper case. */
  readonly method: string;
  readonly path: Readings;
  header(lowerCaseName: string): string | undefined;
}

/** A segment of a rule's path: text, `:name` for one segment, or `*` for any number of segments. */
export type Segment = string | typeof oneSegment | typeof anySegments;
export const oneSegment: unique symbol = Symbol(":name");

/** A rule's path, as written and as matched. */
export interface PathPattern {
  readonly text: string;
  readonly segments: readonly Segment[];
}

/** A prefix of one or more patterns. */
class Node<T> {
  readonly literals = new Map<string, Node<T>>();
  oneSegment: Node<T> | undefined = undefined;
  /** The node after a `*` here. A walk reaches it at once, because `*` may match no segment, and stays in it. */
  anySegments: Node<T> | undefined = undefined;
  readonly stays: boolean;
  end: T | undefined = undefined;
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

/** A condition on one value, such as that of a header. */
export interface ValueTest {
  /** The matching values, if they are a fixed list without `*`. */
  readonly values: readonly string[] | undefined;
  /** @param value undefined if the header or entry is missing. */
  fits(value: string | undefined): boolean;
}

export interface HeaderTest extends ValueTest {
  readonly name: string;
}

/** The parts of a compiled match that an index finds rules by. Undefined parts always match. */
export interface IndexedMatch {
  readonly methods: ReadonlySet<string> | undefined;
  readonly paths: readonly PathPattern[] | undefined;
  readonly headers: readonly HeaderTest[];
}

/** Indexes rules, by their places in the list, under an exact header value. Rules without one are always candidates. */
class ByHeader {
  readonly #rest: number[] = [];
  readonly #values = new Map<string, Map<string | undefined, number[]>>();

  add(place: number, match: IndexedMatch | undefined): void {
    const test = match?.headers.find(({ values }) => values !== undefined);
    if (test?.values === undefined) {
      this.#rest.push(place);
      return;
    }
    const byValue = getOrMake(this.#values, test.name, () => new Map<string | undefined, number[]>());
    for (const value of test.values) getOrMake(byValue, value, () => []).push(place);
  }

  find(parts: RequestParts, found: number[]): void {
    for (const place of this.#rest) found.push(place);
    for (const [name, byValue] of this.#values) {
      const places = byValue.get(parts.header(name));
      if (places !== undefined) for (const place of places) found.push(place);
    }
  }
}

class ByMethod {
  readonly #every = new ByHeader();
  readonly #methods = new Map<string, ByHeader>();

  add(place: number, match: IndexedMatch | undefined): void {
    if (match?.methods === undefined) this.#every.add(place, match);
    else for (const method of match.methods) getOrMake(this.#methods, method, () => new ByHeader()).add(place, match);
  }

  find(parts: RequestParts, found: number[]): void {
    this.#every.find(parts, found);
    this.#methods.get(parts.method)?.find(parts, found);
  }
}

/** Finds the rules that match a request: by path segments, then method, then headers. Cost follows matches, not total rules. */
export class MatchIndex<Rule extends { readonly match: IndexedMatch | undefined }> {
  readonly #rules: readonly Rule[];
  readonly #everyPath = new ByMethod();
  readonly #paths = new PathTrie<ByMethod>();
  readonly #hasPaths: boolean;

  constructor(rules: readonly Rule[]) {
    this.#rules = rules;
    this.#hasPaths = rules.some(({ match }) => match?.paths !== undefined);
    rules.forEach(({ match }, place) => {
      if (match?.paths === undefined) this.#everyPath.add(place, match);
      else for (const ends of new Set(match.paths.map((path) => this.#paths.at(path, () => new ByMethod())))) ends.add(place, match);
    });
  }

  find(parts: RequestParts): readonly Rule[] {
    const found: number[] = [];
    this.#everyPath.find(parts, found);
    if (this.#hasPaths) {
      for (const segments of parts.path) this.#paths.walk(segments, (ends) => ends.find(parts, found));
    }
    if (found.length > 1) found.sort(ascending);
    const rules: Rule[] = [];
    let last = -1;
    for (const place of found) {
      // A rule with several paths or values, or a path with several readings, is found more than once.
      if (place === last) continue;
      last = place;
      const rule = this.#rules[place] as Rule;
      const headers = rule.match?.headers;
      if (headers === undefined || headers.length === 0 || headers.every(({ name, fits }) => fits(parts.header(name)))) rules.push(rule);
    }
    return rules;
  }
}

export const ascending = (a: number, b: number): number => a - b;
