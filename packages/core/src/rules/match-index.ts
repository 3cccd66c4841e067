import type { Readings } from "../requests/path.js";
import { getOrMake } from "../support/maps.js";
import type { CompiledMatch } from "./match.js";
import { PathTrie } from "./path-pattern.js";

/** The parts of a request that rules match. */
export interface RequestParts {
  /** In upper case. */
  readonly method: string;
  readonly path: Readings;
  header(lowerCaseName: string): string | undefined;
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

  find(parts: RequestParts, found: number[]): void {
    for (const place of this.#rest) found.push(place);
    for (const [name, byValue] of this.#values) {
      const value = parts.header(name);
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

  find(parts: RequestParts, found: number[]): void {
    this.#every.find(parts, found);
    if (this.#methods.size > 0) this.#methods.get(parts.method)?.find(parts, found);
  }
}

/** Finds the rules that match a request: by path segments, then method, then headers. Cost follows matches, not total rules. */
export class MatchIndex<Rule extends { readonly match: CompiledMatch | undefined }> {
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
