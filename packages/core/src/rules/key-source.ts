import type { CountedKey, Key } from "../limits/key.js";
import { entryValue } from "../requests/descriptor.js";
import type { KeyFunction } from "../requests/functions.js";
import { noRoute, type RequestContext, type RouteOf } from "../requests/request-context.js";
import { atPath, conflict, FloodgateError, shown } from "../support/errors.js";
import { isHeaderName, nearest } from "../support/options.js";
import { abandon, allOf, andThen, type Promised } from "../support/promises.js";
import type { CompiledMatch } from "./match.js";
import { type KeyDigests, type KeyKind, secretHeaders } from "./secret-keys.js";

/**
 * The names of keys that need no definition, and those the app defines. `secret:` before a header or an own name stores and shows
 * only a digest of the key.
 */
export type KeyName<Own extends string = never> =
  | "ip"
  | "route"
  | "global"
  | `header:${string}`
  | `descriptor:${string}`
  | `secret:header:${string}`
  | `secret:descriptor:${string}`
  | Own
  | `secret:${Own}`;

const builtIn: readonly string[] = ["ip", "route", "global"];
const headerMark = "header:";
const descriptorMark = "descriptor:";
const secretMark = "secret:";

/** Whether a key's name needs no definition, and can have none. */
export function isBuiltInKey(name: string): boolean {
  return builtIn.includes(name) || [headerMark, descriptorMark, secretMark].some((mark) => name.startsWith(mark));
}

/** The entries of a descriptor that a rule with this `key` counts by. */
export function keyedEntries(key: unknown): string[] {
  return [key].flat().flatMap((name) => {
    const plain = typeof name === "string" ? parseKeyName(name).name : "";
    return plain.startsWith(descriptorMark) && plain !== descriptorMark ? [plain.slice(descriptorMark.length)] : [];
  });
}

/** A name in `key` without its `secret:`, and whether only a digest of the key is stored and shown. */
export function parseKeyName(name: string): { readonly name: string; readonly secret: boolean } {
  if (name.startsWith(secretMark)) return { name: name.slice(secretMark.length), secret: true };
  return { name, secret: name.startsWith(headerMark) && secretHeaders.has(name.slice(headerMark.length).toLowerCase()) };
}

/** A function of the request, a name, or a list of names. */
export type KeyOption<Req, Own extends string = never> = KeyFunction<Req> | KeyName<Own> | readonly KeyName<Own>[];

/** What the keys of one middleware's rules may name. */
export interface KeyNames<Req> {
  readonly keys: Readonly<Record<string, KeyFunction<Req>>>;
  readonly digests: KeyDigests;
}

/** Answers the key, with digests in place of secrets; undefined if it is missing. */
type Source<Req> = (context: RequestContext<Req>) => Promised<CountedKey | undefined>;

export interface KeySource<Req> {
  readonly of: Source<Req>;
  /** Of the key, or of each part of a list of names. */
  readonly kind: KeyKind | readonly KeyKind[];
  /** Whether the key may need the client's address: as a part of it, or for a function that takes more than the request. */
  readonly readsAddress: boolean;
  /** Whether a request may have no such key. */
  readonly mayBeMissing: boolean;
}

/**
 * Compiles a rule's `key`.
 * @throws FloodgateError `FLOODGATE_UNKNOWN_KEY` unless each key is a function or a known name.
 */
export function keySource<Req>(where: string, key: unknown, names: KeyNames<Req>, match: CompiledMatch | undefined): KeySource<Req> {
  const routeOf = (context: RequestContext<Req>): string | undefined => ruleRoute(context, match);
  if (typeof key === "function") return ofFunction(key as KeyFunction<Req>, routeOf);
  const ofName = (name: unknown): KeySource<Req> => {
    checkKind(where, name, match);
    return fromName(where, name, names, routeOf);
  };
  if (!Array.isArray(key)) return ofName(key);
  if (key.length === 0) throw unknownKey(where, key, names);
  const parts = key.map((part, i) => atPath([i], () => ofName(part)));
  return {
    of: ofAll(parts.map((part) => part.of)),
    kind: parts.map((part) => part.kind as KeyKind),
    readsAddress: parts.some((part) => part.readsAddress),
    mayBeMissing: parts.some((part) => part.mayBeMissing),
  };
}

function ofFunction<Req>(key: KeyFunction<Req>, routeOf: RouteOf<Req>): KeySource<Req> {
  return { of: (context) => context.key(key, routeOf), kind: "plain", readsAddress: key.length > 1, mayBeMissing: true };
}

function ofAll<Req>(parts: readonly Source<Req>[]): Source<Req> {
  return (context) => {
    const values: ReturnType<Source<Req>>[] = [];
    try {
      for (const part of parts) values.push(part(context));
    } catch (error) {
      abandon(values);
      throw error;
    }
    return andThen(allOf(values), tuple);
  };
}

/** A tuple without one of its parts is no key. */
function tuple(values: readonly (CountedKey | undefined)[]): CountedKey | undefined {
  return values.includes(undefined) ? undefined : (values as CountedKey);
}

function fromName<Req>(where: string, given: unknown, names: KeyNames<Req>, routeOf: RouteOf<Req>): KeySource<Req> {
  if (typeof given !== "string") throw unknownKey(where, given, names);
  const { name, secret } = parseKeyName(given);
  const own = Object.hasOwn(names.keys, name) ? (names.keys[name] as KeyFunction<Req>) : undefined;
  const source =
    own === undefined
      ? (headerSource<Req>(name) ?? entrySource<Req>(name) ?? (secret ? undefined : builtInSource(name, routeOf)))
      : ofFunction(own, routeOf);
  if (source === undefined) throw unknownKey(where, given, names);
  return secret ? { ...source, of: digested(source.of, names.digests), kind: "secret" } : source;
}

function builtInSource<Req>(name: string, routeOf: RouteOf<Req>): KeySource<Req> | undefined {
  if (name === "ip") return { of: (context) => context.ip(), kind: "address", readsAddress: true, mayBeMissing: true };
  if (name === "route") return { ...neverMissing, of: (context) => routeOf(context) ?? noRoute() };
  return name === "global" ? { ...neverMissing, of: () => "global" } : undefined;
}

const neverMissing = { kind: "plain", readsAddress: false, mayBeMissing: false } as const;

function headerSource<Req>(name: string): KeySource<Req> | undefined {
  const header = name.startsWith(headerMark) ? name.slice(headerMark.length).toLowerCase() : undefined;
  return isHeaderName(header) ? { ...neverMissing, of: (context) => context.header(header) || undefined, mayBeMissing: true } : undefined;
}

/** The rule matches only descriptors that have the entry. An empty value is a value like others. */
function entrySource<Req>(name: string): KeySource<Req> | undefined {
  const [entry] = keyedEntries(name);
  if (entry === undefined) return undefined;
  return { ...neverMissing, of: ({ descriptor }) => descriptor && entryValue(descriptor, entry) };
}

/** @throws FloodgateError if a rule counts descriptors by what only HTTP requests have, or the reverse. */
function checkKind(where: string, given: unknown, match: CompiledMatch | undefined): void {
  if (typeof given !== "string") return;
  const { name } = parseKeyName(given);
  if (match?.descriptor === undefined) {
    if (!name.startsWith(descriptorMark)) return;
    throw conflict(
      `${where}: \`key\` is ${shown(given)}, which only descriptors of Envoy's rate limit service have. Write match: { domain: "edge" } or match: { descriptor: { ... } }.`,
    );
  }
  if (name !== "route" && !name.startsWith(headerMark)) return;
  throw conflict(
    `${where}: \`key\` is ${shown(given)}, which only HTTP requests have, but the rule counts descriptors. Write key: "descriptor:remote_address".`,
  );
}

function digested<Req>(of: Source<Req>, digests: KeyDigests): Source<Req> {
  const digest = (key: CountedKey | undefined): CountedKey | undefined => (key === undefined ? undefined : digests.digest(key as Key));
  return (context) => andThen<CountedKey | undefined, CountedKey | undefined>(of(context), digest);
}

/** The rule's own path if it has no `*`, else the framework's route, else the rule's path. */
function ruleRoute<Req>(context: RequestContext<Req>, match: CompiledMatch | undefined): string | undefined {
  const own = match?.paths === undefined ? undefined : match.pattern(context.path);
  return own === undefined || own.includes("*") ? (context.route ?? own) : own;
}

function unknownKey<Req>(where: string, key: unknown, names: KeyNames<Req>): FloodgateError {
  const own = Object.keys(names.keys);
  const known = [...builtIn, ...own];
  const near = typeof key === "string" ? nearKey(key, known, own) : undefined;
  const isBuiltInSecret = typeof key === "string" && key.startsWith(secretMark) && builtIn.includes(key.slice(secretMark.length));
  const hint = isBuiltInSecret ? " `secret:` goes before a header or one of your own keys." : "";
  const isName = near === undefined && typeof key === "string" && /^[a-z]\w{0,40}$/i.test(key);
  return new FloodgateError(
    "FLOODGATE_UNKNOWN_KEY",
    `${where}: \`key\` must be a function of the request, a name or a list of names (${known.join(", ")}, header:<name>, descriptor:<name>, secret:<name>), but was ${shown(key)}.${near === undefined ? hint : ` Did you mean ${shown(near)}?`} Define your own names in \`keys\`${isName ? `: keys: { ${key}: (req) => req.user?.id }` : ""}.`,
  );
}

/** The name of a key that a wrong one probably means. */
function nearKey(key: string, known: readonly string[], own: readonly string[]): string | undefined {
  const [isMarked, header = ""] = /^headers?(?:[^\w-](.*))?$/i.exec(key) ?? [];
  if (isMarked !== undefined && header === "") return `${headerMark}x-api-key`;
  // Most names of headers have a hyphen, and no built-in name of a key has one.
  const isBareHeader = key.includes("-") && !own.some((name) => name.includes("-"));
  const name = isMarked === undefined && isBareHeader ? key : header;
  if (isHeaderName(name)) return headerMark + name.toLowerCase();
  return nearest(key, [...known, ...own.map((name) => secretMark + name)]);
}
