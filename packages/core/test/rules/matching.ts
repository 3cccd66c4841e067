import { type RequestPath, readingsOf } from "../../src/requests/path.js";
import { compileMatch, type Match } from "../../src/rules/match.js";
import { MatchIndex, type RequestParts } from "../../src/rules/match-index.js";

export interface Request {
  readonly method: string;
  readonly path: RequestPath;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request as the index reads it. */
const partsOf = ({ method, path, headers = {} }: Request): RequestParts => ({
  method: method.toUpperCase(),
  path: readingsOf(path),
  header: (name) => (Object.hasOwn(headers, name) ? headers[name] : undefined),
});

/** The indexes of the matches that include a request. */
export function placesOf(matches: readonly (Match | undefined)[], request: Request): readonly number[] {
  const rules = matches.map((match, place) => ({ place, match: match === undefined ? undefined : compileMatch("rule", match) }));
  return new MatchIndex(rules).find(partsOf(request)).map(({ place }) => place);
}

export const fits = (match: Match, method: string, path: string, headers = {}): boolean =>
  placesOf([match], { method, path, headers }).length === 1;
