import { anySegments, folded, type Readings } from "../requests/path.js";
import { atPath, invalidOption, shown, wrongOption } from "../support/errors.js";
import { checkOptions, didYouMean, isHeaderName } from "../support/options.js";
import { type HeaderTest, type IndexedMatch, oneSegment, type PathPattern, PathTrie, type Segment, type ValueTest } from "./match-index.js";

/** The requests that a rule counts. All given parts must match. */
export interface Match {
  /** One method or several; `GET` covers `HEAD`. */
  readonly method?: string | readonly string[];
  /** One or several full paths (mounts included), with `:name` for one segment and `*` for any number of segments. */
  readonly path?: string | readonly string[];
  /**
   * Headers and their values: a string (`*` stands for any characters), a list of strings (one must match), `true` for any value,
   * or `false` if the header must be missing.
   */
  readonly header?: Readonly<Record<string, string | readonly string[] | boolean>>;
  /**
   * The domain of a request to Envoy's rate limit service, which `floodgate serve` answers: one or several, with `*` for any characters. A
   * rule with `domain` or `descriptor` counts descriptors, and no HTTP requests.
   */
  readonly domain?: string | readonly string[];
  /** The entries of a descriptor and their values, as in `header`. Of several entries with one key, one must match. */
  readonly descriptor?: Readonly<Record<string, string | readonly string[] | boolean>>;
}

/** A condition on the entries of one key. */
export interface EntryTest extends ValueTest {
  readonly name: string;
  /** Whether it fits if there is no entry with this key. */
  readonly absent: boolean;
}

/** The descriptors that a rule counts. */
export interface DescriptorMatch {
  readonly domain: ValueTest | undefined;
  readonly entries: readonly EntryTest[];
}

export interface CompiledMatch extends IndexedMatch {
  /** The descriptors that match. Undefined for HTTP requests. If only HTTP requests are limited, it is not read: "unread". */
  readonly descriptor: DescriptorMatch | "unread" | undefined;
  /** The rule's first path that matches, as written in the rule. Readings are tried in order. */
  pattern(readings: Readings): string | undefined;
}

/**
 * @param readDescriptor compiles `domain` and `descriptor`. Without it such a rule is accepted, and matches nothing.
 * @throws FloodgateError if a part is invalid, or can never match.
 */
export function compileMatch(
  where: string,
  match: Match,
  readDescriptor?: (where: string, match: Match) => DescriptorMatch,
): CompiledMatch {
  return atPath(["match"], () => {
    const parts = ["method", "path", "header", "domain", "descriptor"];
    checkOptions(`${where}: match`, match, parts, 'match: { method: "POST", path: "/posts" }');
    // Such a rule counts no HTTP request, and other rules count no descriptor.
    const isForDescriptors = match.domain !== undefined || match.descriptor !== undefined;
    const descriptor = isForDescriptors ? (readDescriptor?.(where, match) ?? "unread") : undefined;
    const methods = match.method === undefined ? undefined : compileMethods(where, match.method);
    const paths = match.path === undefined ? undefined : each(where, "path", match.path, (path) => compilePath(where, path));
    const headers = match.header === undefined ? [] : compileHeaders(where, match.header);
    return { methods, paths, headers, descriptor, pattern: patternOf(paths ?? []) };
  });
}

function patternOf(paths: readonly PathPattern[]): CompiledMatch["pattern"] {
  const trie = new PathTrie<number>();
  // The first of equal patterns wins.
  paths.forEach((path, i) => {
    trie.at(path, () => i);
  });
  return (readings) => {
    let first = paths.length;
    for (const segments of readings) {
      trie.walk(segments, (i) => {
        if (i < first) first = i;
      });
      if (first < paths.length) break;
    }
    return paths[first]?.text;
  };
}

/** One value or a list of at least one. */
function each<T>(where: string, option: string, value: unknown, compile: (value: unknown) => T): T[] {
  if (!Array.isArray(value)) return [atPath([option], () => compile(value))];
  if (value.length > 0) return value.map((item, i) => atPath([option, i], () => compile(item)));
  throw invalidOption(`${where}: \`match.${option}\` is an empty array, which matches no request. Leave it out to match every request.`, [
    option,
  ]);
}

/** @throws FloodgateError if the path is invalid, or can never match. */
function compilePath(where: string, path: unknown): PathPattern {
  if (typeof path !== "string" || !path.startsWith("/")) {
    throw wrongOption(where, "match.path", 'a path that begins with "/"', path, 'path: "/posts/:id"', []);
  }
  // A `?` at the end of a segment is a router pattern, not the start of a query.
  const query = /#|\?(?!\/|$)/.exec(path);
  if (query !== null) {
    throw invalidOption(
      `${where}: \`match.path\` is matched without the query, so ${shown(path)} can never match. Write path: ${shown(path.slice(0, query.index))}.`,
    );
  }
  const segments = path
    .split("/")
    .filter((segment) => segment !== "")
    .map((segment): Segment => {
      if (segment === "*") return anySegments;
      if (/^:[A-Za-z_$][\w$]*$/.test(segment)) return oneSegment;
      const [sign] = routerSigns.exec(segment) ?? [];
      if (sign === undefined) return folded(segment);
      const character = sign.startsWith(":") ? ":" : sign;
      throw invalidOption(
        `${where}: in \`match.path\` a segment is text, \`:name\` or \`*\`, but ${shown(segment)} in ${shown(path)} has a ${shown(character)}. Write ":id" for a segment, "*" for any number of them, or several paths: path: ["/a", "/b"]. The character itself is written %${character.charCodeAt(0).toString(16).toUpperCase()}.`,
      );
    });
  return { text: path, segments };
}

/**
 * The pattern syntax of the routers of Express (the `|` of version 4), Koa and Hono. Taken literally, it would never match. Other characters
 * (`-`, `.`, `~`, `'`, `$`, `!`) are text.
 */
const routerSigns = /^:|:\w|[*?+(){}[\]\\|]/;

/** The methods that Node's HTTP server accepts. A rule for another method would never match. */
const knownMethods = (
  "ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL MOVE NOTIFY OPTIONS PATCH POST " +
  "PROPFIND PROPPATCH PURGE PUT QUERY REBIND REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE"
).split(" ");

function compileMethods(where: string, methods: string | readonly string[]): Set<string> {
  const known = new Set(
    each(where, "method", methods, (method) => {
      const name = typeof method === "string" ? method.toUpperCase() : "";
      if (knownMethods.includes(name)) return name;
      throw invalidOption(
        `${where}: \`match.method\` must be an HTTP method, but was ${shown(method)}.${didYouMean(name, knownMethods)} Write method: "POST".`,
      );
    }),
  );
  if (known.has("GET")) known.add("HEAD");
  return known;
}

function compileHeaders(where: string, headers: NonNullable<Match["header"]>): HeaderTest[] {
  return atPath(["header"], () => {
    if (typeof headers !== "object" || headers === null || Array.isArray(headers)) {
      throw invalidOption(
        `${where}: \`match.header\` must name headers and their values, but was ${shown(headers)}. Write header: { "x-api-version": "2" }.`,
      );
    }
    return Object.entries(headers).map(([name, value]) => {
      if (isHeaderName(name)) return headerTest(where, name, value);
      throw invalidOption(
        `${where}: \`match.header\` names ${shown(name)}, which is not a valid header name. Write header: { "x-api-version": "2" }.`,
        [name],
      );
    });
  });
}

function headerTest(where: string, name: string, value: string | readonly string[] | boolean): HeaderTest {
  const lowerCaseName = name.toLowerCase();
  if (typeof value === "boolean") return { name: lowerCaseName, ...valueTest(value) };
  const texts = each(where, name, value, (text) => {
    // Servers trim header values.
    if (typeof text === "string" && text.trim() === text) return text;
    throw invalidOption(
      `${where}: \`match.header\` takes for ${shown(name)} a string without spaces around it, a list of strings, true or false, but was given ${shown(text)}. Write header: { ${shown(name)}: ${typeof text === "string" ? shown(text.trim()) : '"2"'} }.`,
    );
  });
  return { name: lowerCaseName, ...valueTest(texts) };
}

/** True for any value, false for none; or one of these texts, in which `*` stands for any characters. */
export function valueTest(expected: boolean | readonly string[]): ValueTest {
  if (typeof expected === "boolean") return { values: undefined, fits: (given) => (given !== undefined) === expected };
  const patterns = expected.map((text) => text.split("*"));
  return {
    values: patterns.every((parts) => parts.length === 1) ? expected : undefined,
    fits: (given) => given !== undefined && patterns.some((parts) => fitsParts(given, parts)),
  };
}

/** Whether a text consists of these parts with anything between them. Each part is matched as early as possible, the last at the end. */
function fitsParts(text: string, parts: readonly string[]): boolean {
  const last = parts[parts.length - 1] as string;
  if (parts.length === 1) return text === last;
  const first = parts[0] as string;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  let from = first.length;
  for (let i = 1; i < parts.length - 1; i++) {
    const part = parts[i] as string;
    const at = text.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return from <= text.length - last.length;
}
