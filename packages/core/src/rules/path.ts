import { FloodgateError, shown } from "../errors.js";

/** A part of a path as a rule writes it: a text, `:name` for one segment, `*` for any number of them. */
export type Segment = string | typeof one | typeof any;
export const one: unique symbol = Symbol(":name");
export const any: unique symbol = Symbol("*");

/** A path of a rule, as it is written and as it is matched. */
export interface PathPattern {
  readonly text: string;
  readonly segments: readonly Segment[];
}

/** @throws FloodgateError where it is no path, or one that no request has. */
export function compilePath(where: string, path: unknown): PathPattern {
  if (typeof path !== "string" || !path.startsWith("/")) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${where}: \`match.path\` must be a path that begins with "/", but was ${shown(path)}. Write path: "/posts/:id".`,
    );
  }
  const query = /[?#]/.exec(path);
  if (query !== null) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${where}: \`match.path\` is matched without the query, so ${shown(path)} can never match. Write path: ${shown(path.slice(0, query.index))}.`,
    );
  }
  const segments = segmentsOf(path).map((segment): Segment => {
    if (segment === "*") return any;
    if (/^:[a-z_$][\w$]*$/.test(segment)) return one;
    if (/^:|\*/.test(segment)) {
      throw new FloodgateError(
        "FLOODGATE_INVALID_OPTION",
        `${where}: in \`match.path\` a segment is text, a \`:name\` or a \`*\` alone, but one was ${shown(segment)} in ${shown(path)}. Write path: "/files/*".`,
      );
    }
    return segment;
  });
  return { text: path, segments };
}

/** Case, empty segments, a trailing slash and percent-encoding make no difference: routers are no stricter, and neither may a limit be. */
export function segmentsOf(path: string): string[] {
  const query = path.indexOf("?");
  const end = query < 0 ? path.length : query;
  const segments: string[] = [];
  for (let from = 0; from < end; ) {
    const slash = path.indexOf("/", from);
    const to = slash < 0 || slash > end ? end : slash;
    if (to > from) segments.push(decoded(path.slice(from, to)).toLowerCase());
    from = to + 1;
  }
  return segments;
}

function decoded(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
