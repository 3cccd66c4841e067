import type { CompiledMatch } from "./match.js";
import { type RequestPath, readingsOf } from "./path.js";
import { PathTrie } from "./path-trie.js";

/** Reads the parts of a request that rules match. */
export interface RequestParts<Req> {
  method(request: Req): string;
  path(request: Req): RequestPath;
  header(request: Req, lowerCaseName: string): string | undefined;
}

/** Indexes rules, by their places in the list, under an exact header value. Rules without one are always candidates. */
class ByHeader {
  readonly #rest: number[] = [];
  readonly #values = new Map<string, Map<string, number[]>>();

  add(place: number, match: CompiledMatch | undefined): void {
    const test = match?.headers.find(({ values }) => values !== undefined);
    if (test?.values === undefined) {
      this.#rest.push(place);
      return;
    }
    const byValue = getOrMake(this.#values, test.name, () => new Map<string, number[]>());
    for (const value of test.values) getOrMake(byValue, value, () => []).push(place);
  }

  find<Req>(request: Req, parts: RequestParts<Req>, found: number[]): void {
    for (const place of this.#rest) found.push(place);
    for (const [name, byValue] of this.#values) {
      const value = parts.header(request, name);
      if (value === undefined) continue;
      const places = byValue.get(value);
      if (places !== undefined) for (const place of places) found.push(place);
    }
  }
}

class ByMethod {
  readonly #every = new ByHeader();
  readonly #methods = new Map<string, ByHeader>();

  add(place: number, match: CompiledMatch | undefined): void {
    if (match?.methods === undefined) this.#every.add(place, match);
    else for (const method of match.methods) getOrMake(this.#methods, method, () => new ByHeader()).add(place, match);
  }

  find<Req>(request: Req, parts: RequestParts<Req>, found: number[]): void {
    this.#every.find(request, parts, found);
    // An HTTP/2 client may send a method in lower case, and routers accept it.
    if (this.#methods.size > 0) this.#methods.get(parts.method(request).toUpperCase())?.find(request, parts, found);
  }
}

/** Finds the rules that match a request: by path segments, then method, then headers. Cost follows matches, not total rules. */
export class MatchIndex {
  readonly #matches: readonly (CompiledMatch | undefined)[];
  readonly #everyPath = new ByMethod();
  readonly #paths = new PathTrie<ByMethod>();
  readonly #hasPaths: boolean;

  /** @param matches the rules' matches, in the rules' order; undefined for a rule that matches every request. */
  constructor(matches: readonly (CompiledMatch | undefined)[]) {
    this.#matches = matches;
    this.#hasPaths = matches.some((match) => match?.paths !== undefined);
    matches.forEach((match, place) => {
      if (match?.paths === undefined) this.#everyPath.add(place, match);
      else for (const ends of new Set(match.paths.map((path) => this.#paths.at(path, () => new ByMethod())))) ends.add(place, match);
    });
  }

  /** The places of the rules that match, in the rules' order. */
  find<Req>(request: Req, parts: RequestParts<Req>): readonly number[] {
    const found: number[] = [];
    this.#everyPath.find(request, parts, found);
    if (this.#hasPaths) {
      for (const segments of readingsOf(parts.path(request))) {
        this.#paths.walk(segments, (ends) => ends.find(request, parts, found));
      }
    }
    if (found.length > 1) found.sort(ascending);
    let kept = 0;
    for (const place of found) {
      // A rule with several paths or values, or a path with several readings, is found more than once.
      if (kept > 0 && found[kept - 1] === place) continue;
      const headers = this.#matches[place]?.headers;
      if (headers === undefined || headers.every(({ name, fits }) => fits(parts.header(request, name)))) found[kept++] = place;
    }
    found.length = kept;
    return found;
  }
}

const ascending = (a: number, b: number): number => a - b;

function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
