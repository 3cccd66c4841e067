import { anySegments, folded, isSegment } from "../requests/path.js";
import { FloodgateError, shown } from "../support/errors.js";

/** A segment of a rule's path: text, `:name` for one segment, or `*` for any number of segments. */
export type Segment = string | typeof oneSegment | typeof anySegments;
export const oneSegment: unique symbol = Symbol(":name");

/** A rule's path, as written and as matched. */
export interface PathPattern {
  readonly text: string;
  readonly segments: readonly Segment[];
}

/** @throws FloodgateError if the path is invalid, or can never match. */
export function compilePath(where: string, path: unknown): PathPattern {
  if (typeof path !== "string" || !path.startsWith("/")) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${where}: \`match.path\` must be a path that begins with "/", but was ${shown(path)}. Write path: "/posts/:id".`,
    );
  }
  // A `?` at the end of a segment is a router pattern, not the start of a query.
  const query = /#|\?(?!\/|$)/.exec(path);
  if (query !== null) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${where}: \`match.path\` is matched without the query, so ${shown(path)} can never match. Write path: ${shown(path.slice(0, query.index))}.`,
    );
  }
  const segments = path
    .split("/")
    .filter(isSegment)
    .map((segment): Segment => {
      if (segment === "*") return anySegments;
      if (/^:[A-Za-z_$][\w$]*$/.test(segment)) return oneSegment;
      const [sign] = routerSigns.exec(segment) ?? [];
      if (sign === undefined) return folded(segment);
      const character = sign.startsWith(":") ? ":" : sign;
      throw new FloodgateError(
        "FLOODGATE_INVALID_OPTION",
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
