/** Segments of which nothing is known: any number of them. In a rule's path, the `*`. */
export const anySegments: unique symbol = Symbol("*");

/** A request's path, or the paths that it may have where the adapter cannot tell for certain which one the routers follow. */
export type RequestPath = string | readonly PossiblePath[];

export interface PossiblePath {
  readonly path: string;
  /** Where more segments may stand, of which nothing is known. */
  readonly unknown?: "before" | "after";
}

/** Segments of a request's path. `anySegments` stands for segments that are not known: it fits whatever a rule has there. */
export type Reading = readonly (string | typeof anySegments)[];

/** A path's segments, once for each way to read it. */
export type Readings = readonly Reading[];

/** A path with more segments is read at its beginning and its end only, so that no path takes long to match. */
const mostSegments = 64;
const segmentsAtEnd = 4;

/**
 * Reads a request's path as it is written, which is how routers take it. Handlers may see another path in it, because they resolve
 * it as a URL, as a path of the file system once it is decoded, or as both. It is read in those ways too, so that no spelling gets
 * around a limit. A rule fits if any reading fits; the first reading that fits gives the pattern.
 */
export function readingsOf(path: RequestPath): Readings {
  if (typeof path === "string") return readingsOfText(path);
  return path.flatMap(({ path, unknown }) => {
    const readings = readingsOfText(path);
    if (unknown === undefined) return readings;
    return readings.map((reading): Reading => (unknown === "before" ? [anySegments, ...reading] : [...reading, anySegments]));
  });
}

function readingsOfText(target: string): Readings {
  const query = target.indexOf("?");
  const path = query < 0 ? target : target.slice(0, query);
  const written = writtenSegments(path);
  if (!/\/\/|(?:^|\/)\.|\\|%(?:2[ef]|5c)/i.test(path)) return written.length > mostSegments ? [shortened(written)] : [written];
  const normalised = resolved(path.split(/[/\\]/).map(folded)).filter(isSegment);
  const readings: Reading[] = [written, normalised, onDisk(written), onDisk(normalised)].map(shortened);
  // Some routers take an empty segment for the value of a parameter.
  if (path.includes("//")) readings.push(shortened(path.slice(1).split("/").map(folded)));
  // A mount path with parameters may take the first segments as they are, before the rest is resolved.
  for (let i = 0; i < written.length && i < mostMounted; i++) {
    const segment = written[i] as string;
    if (!/^\.\.?$|[/\\]/.test(segment)) continue;
    const rest = written.slice(i + 1);
    if (rest.length > mostSegments) {
      readings.push([...written.slice(0, i + 1), anySegments]);
      break;
    }
    readings.push([...written.slice(0, i + 1), ...onDisk(rest)]);
  }
  return readings;
}

/** How many segments mount paths with parameters may take of a path that has dot segments. */
const mostMounted = 8;

function shortened(segments: readonly string[]): Reading {
  if (segments.length <= mostSegments) return segments;
  return [...segments.slice(0, mostSegments - segmentsAtEnd), anySegments, ...segments.slice(-segmentsAtEnd)];
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

export const isSegment = (part: string): boolean => part !== "";

/** A segment as it is compared: case and percent-encoding make no difference. */
export function folded(segment: string): string {
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
