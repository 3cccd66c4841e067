import { FloodgateError, shown } from "../errors.js";
import { checkOptions } from "../options.js";

/** Which requests a rule is for: all parts that are given must fit. */
export interface Match {
  /** One method or several; `GET` covers `HEAD`. */
  readonly method?: string | readonly string[];
  /** A full path or several (mounts included), with `:name` for one segment and `*` for any number of them. */
  readonly path?: string | readonly string[];
}

/** A compiled match. */
export interface Matcher {
  fits(method: string, path: string): boolean;
  /** The first of the rule's paths that fits, as the rule writes it; undefined where none does, or the rule has none. */
  pattern(path: string): string | undefined;
}

/** @throws FloodgateError where a method or path is none. */
export function compileMatch(where: string, match: Match | undefined): Matcher | undefined {
  if (match === undefined) return undefined;
  checkOptions(`${where}.match`, match, ["method", "path"], '{ method: "POST", path: "/posts" }');
  const methods = match.method === undefined ? undefined : compileMethods(where, list(match.method));
  const paths = match.path === undefined ? undefined : list(match.path).map((text) => ({ text, pattern: compilePath(where, text) }));
  const pattern = (path: string): string | undefined => {
    const segments = segmentsOf(path);
    return paths?.find((one) => matches(one.pattern, segments))?.text;
  };
  return {
    fits: (method, path) => (methods === undefined || methods.has(method)) && (paths === undefined || pattern(path) !== undefined),
    pattern,
  };
}

function list(value: string | readonly string[]): readonly string[] {
  return Array.isArray(value) ? value : [value as string];
}

function compileMethods(where: string, methods: readonly string[]): Set<string> {
  const known = new Set<string>();
  for (const method of methods) {
    if (typeof method !== "string" || !/^[A-Za-z-]+$/.test(method)) {
      throw new FloodgateError(
        "FLOODGATE_INVALID_OPTION",
        `${where}: \`match.method\` must be an HTTP method, but was ${shown(method)}. Write method: "POST".`,
      );
    }
    known.add(method.toUpperCase());
  }
  if (known.has("GET")) known.add("HEAD");
  return known;
}

type Segment = string | typeof one | typeof any;
const one = Symbol(":name");
const any = Symbol("*");

function compilePath(where: string, path: unknown): Segment[] {
  if (typeof path !== "string" || !path.startsWith("/")) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${where}: \`match.path\` must be a path that begins with "/", but was ${shown(path)}. Write path: "/posts/:id".`,
    );
  }
  return segmentsOf(path).map((segment) => {
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
}

/** Case, empty segments, a trailing slash and percent-encoding make no difference: routers are no stricter, and neither may a limit be. */
function segmentsOf(path: string): string[] {
  const query = path.indexOf("?");
  const segments = (query < 0 ? path : path.slice(0, query)).split("/");
  return segments.filter((segment) => segment !== "").map((segment) => decoded(segment).toLowerCase());
}

function decoded(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Two pointers and the last `*`: linear in the path for one `*`, and never exponential. */
function matches(pattern: readonly Segment[], segments: readonly string[]): boolean {
  let at = 0;
  let star = -1;
  let retry = 0;
  let i = 0;
  while (i < segments.length) {
    const expected = pattern[at];
    if (expected === any) {
      star = at++;
      retry = i;
    } else if (at < pattern.length && (expected === one || expected === segments[i])) {
      at++;
      i++;
    } else if (star >= 0) {
      at = star + 1;
      i = ++retry;
    } else {
      return false;
    }
  }
  while (pattern[at] === any) at++;
  return at === pattern.length;
}
