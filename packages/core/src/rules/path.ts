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
  const segments = writtenSegments(path).map((segment): Segment => {
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

/** A path's segments, once for each way to read it. */
export type Readings = readonly (readonly string[])[];

/**
 * Reads a request's path as it is written, which is how routers take it. Where handlers may see another one in it, since they resolve
 * it as a URL, as a path of the file system once it is decoded, or as both, it is read in those ways too: no spelling may reach past a
 * limit what it is for. A rule is for a request that fits in any reading; the first that fits gives the pattern.
 */
export function readingsOf(target: string): Readings {
  const query = target.indexOf("?");
  const path = query < 0 ? target : target.slice(0, query);
  const written = writtenSegments(path);
  if (!/\/\.|\\|%(?:2[ef]|5c)/i.test(path)) return [written];
  const normalised = resolved(path.split(/[/\\]/).map(folded)).filter(isSegment);
  return [written, normalised, onDisk(written), onDisk(normalised)];
}

/** Case, empty segments, a trailing slash and percent-encoding make no difference: routers are no stricter, and neither may a limit be. */
function writtenSegments(path: string): string[] {
  const segments: string[] = [];
  for (let from = 0; from < path.length; ) {
    const slash = path.indexOf("/", from);
    const to = slash < 0 ? path.length : slash;
    if (to > from) segments.push(folded(path.slice(from, to)));
    from = to + 1;
  }
  return segments;
}

/** What a file system makes of decoded segments: slashes in them part them, and so do those of Windows. */
function onDisk(segments: readonly string[]): string[] {
  return resolved(segments.join("/").split(/[/\\]/).filter(isSegment));
}

/** Without dot segments. An empty one counts: in a URL `..` takes it back as it does any other. */
function resolved(parts: readonly string[]): string[] {
  const left: string[] = [];
  for (const part of parts) {
    if (part === "..") left.pop();
    else if (part !== ".") left.push(part);
  }
  return left;
}

const isSegment = (part: string): boolean => part !== "";

function folded(segment: string): string {
  return decoded(segment).toLowerCase();
}

function decoded(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
