/** Stands for any number of unknown segments. In a rule's path, the `*`. */
export const anySegments: unique symbol = Symbol("*");

/** A request's path; or several, if the adapter cannot be certain which path the routers follow. */
export type RequestPath = string | readonly PossiblePath[];

export interface PossiblePath {
  readonly path: string;
  /** Where unknown segments may be added. */
  readonly unknown?: "before" | "after";
}

/** Segments of a request's path. `anySegments` stands for unknown segments, and matches everything. */
export type Reading = readonly (string | typeof anySegments)[];

/** All readings of a path. */
export type Readings = readonly Reading[];

/** Of a longer path only the start and the end are read, so that no path takes long to match. */
const maxSegments = 64;
const segmentsAtEnd = 4;

/**
 * Reads a request's path as written, like routers do. Handlers may see another path, because they resolve it as a URL, as a decoded file
 * system path, or both. The path is read in those ways too, so that no spelling avoids a limit. A rule matches if any reading matches; the
 * first reading that matches gives the pattern.
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
  if (!/\/\/|(?:^|\/)\.|\\|%(?:2[ef]|5c)/i.test(path)) return written.length > maxSegments ? [shortened(written)] : [written];
  const normalised = resolved(path.split(/[/\\]/).map(folded)).filter(isSegment);
  const readings: Reading[] = [written, normalised, onDisk(written), onDisk(normalised)].map(shortened);
  // Some routers take an empty segment as the value of a parameter.
  if (path.includes("//")) readings.push(shortened(path.slice(1).split("/").map(folded)));
  // A mount path with parameters may consume the first segments before the rest is resolved.
  for (let i = 0; i < written.length && i < maxMounted; i++) {
    const segment = written[i] as string;
    if (!/^\.\.?$|[/\\]/.test(segment)) continue;
    const rest = written.slice(i + 1);
    if (rest.length > maxSegments) {
      readings.push([...written.slice(0, i + 1), anySegments]);
      break;
    }
    readings.push([...written.slice(0, i + 1), ...onDisk(rest)]);
  }
  return readings;
}

/** The most segments that mount paths with parameters may consume of a path with dot segments. */
const maxMounted = 8;

function shortened(segments: readonly string[]): Reading {
  if (segments.length <= maxSegments) return segments;
  return [...segments.slice(0, maxSegments - segmentsAtEnd), anySegments, ...segments.slice(-segmentsAtEnd)];
}

/** Case, empty segments, a trailing slash and percent-encoding make no difference, because they make none to routers. */
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

/** The segments as a file system path: decoded slashes and backslashes separate segments too. */
function onDisk(segments: readonly string[]): string[] {
  return resolved(segments.join("/").split(/[/\\]/).filter(isSegment));
}

/** Removes dot segments. An empty segment counts: in a URL, `..` removes it like any other. */
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
