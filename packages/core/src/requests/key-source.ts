import { type CountedKey, type Key, type KeyDigest, type KeyPart, namedAddress } from "../limits/key.js";
import type { CompiledMatch } from "../rules/match.js";
import { type RequestPath, readingsOf } from "../rules/path.js";
import { FloodgateError, inside, shown } from "../support/errors.js";
import { nearest } from "../support/options.js";
import { abandon, andThen, isPromise } from "../support/promises.js";
import { isHeaderName } from "./header-name.js";
import { isSecretHeader, type KeyDigests, type Secrecy } from "./secret-keys.js";

/** What a key function is told besides the request. */
export interface KeyInfo {
  /** The client's address, normalised: IPv4 as a dotted quad, IPv6 as its prefix. Reading it throws where there is none. */
  readonly ip: string;
  /**
   * The pattern that matched: the rule's own path where that has no `*`, else the one that the framework knows, else the rule's.
   * Reading it throws where there is none.
   */
  readonly route: string;
}

/** Answers whom a request counts for, or undefined where it has no key. */
export type KeyFunction<Req> = (request: Req, info: KeyInfo) => Key | undefined | PromiseLike<Key | undefined>;

/**
 * The names of keys that need no definition, and those the app defines. `secret:` before a header or an own name stores and shows
 * only a digest of the key.
 */
export type KeyName<Own extends string = never> =
  | "ip"
  | "route"
  | "global"
  | `header:${string}`
  | `secret:header:${string}`
  | Own
  | `secret:${Own}`;

const builtIn: readonly string[] = ["ip", "route", "global"];
const headerMark = "header:";
const secretMark = "secret:";

/** Whether a key's name needs no definition, and can have none. */
export function isBuiltInKey(name: string): boolean {
  return builtIn.includes(name) || name.startsWith(headerMark) || name.startsWith(secretMark);
}

/** A name in `key` without its `secret:`, and whether only a digest of the key is stored and shown. */
export function parseKeyName(name: string): { readonly name: string; readonly secret: boolean } {
  if (name.startsWith(secretMark)) return { name: name.slice(secretMark.length), secret: true };
  return { name, secret: name.startsWith(headerMark) && isSecretHeader(name.slice(headerMark.length).toLowerCase()) };
}

/** A function of the request, a name, or a tuple of names. */
export type KeyOption<Req, Own extends string = never> = KeyFunction<Req> | KeyName<Own> | readonly KeyName<Own>[];

/** Where keys come from in one middleware. */
export interface KeySources<Req> {
  readonly keys: Readonly<Record<string, KeyFunction<Req>>>;
  /** The normalised client IP, or undefined where there is none. */
  ip(request: Req): string | undefined | PromiseLike<string | undefined>;
  /** The client's whole address. */
  address(request: Req): string | undefined | PromiseLike<string | undefined>;
  /** Whether a text is the client's whole IPv6 address. One client has very many of these. */
  isWholeIpv6(request: Req, text: string): boolean;
  path(request: Req): RequestPath;
  route(request: Req): string | undefined;
  header(request: Req, name: string): string | undefined;
  /** How many bits of an IPv6 address make one client. */
  readonly ipv6Prefix: number;
  readonly digests: KeyDigests;
}

/** Answers the key as the app or the request gives it, undefined where it is missing. */
type PlainSource<Req> = (request: Req) => ReturnType<KeyFunction<Req>>;

/** The same, with digests in place of secrets. */
type Source<Req> = (request: Req) => CountedKey | undefined | PromiseLike<CountedKey | undefined>;

/** A rule's `key`, compiled. */
export interface KeySource<Req> {
  readonly of: Source<Req>;
  readonly secrecy: Secrecy;
  /** Whether the key, or each of its parts, is the client's address. */
  readonly addresses: boolean | readonly boolean[];
}

/** @throws FloodgateError `FLOODGATE_UNKNOWN_KEY` unless each key is a function or a known name. */
export function keySource<Req>(where: string, key: unknown, sources: KeySources<Req>, match: CompiledMatch | undefined): KeySource<Req> {
  if (typeof key === "function") return { of: fromFunction(key as KeyFunction<Req>, sources, match), secrecy: false, addresses: false };
  if (!Array.isArray(key)) return fromName(where, key, sources, match);
  if (key.length === 0) throw unknownKey(where, key, sources);
  const parts = key.map((part, i) => inside([i], () => fromName(where, part, sources, match)));
  return {
    of: ofAll(parts.map((part) => part.of)),
    secrecy: parts.map((part) => part.secrecy === true),
    addresses: parts.map((part) => part.addresses === true),
  };
}

function ofAll<Req>(parts: readonly Source<Req>[]): Source<Req> {
  return (request) => {
    const values: ReturnType<Source<Req>>[] = [];
    try {
      for (const part of parts) values.push(part(request));
    } catch (error) {
      abandon(values);
      throw error;
    }
    return values.some(isPromise) ? Promise.all(values).then(tuple) : tuple(values as (CountedKey | undefined)[]);
  };
}

/** A tuple that lacks a part is no key. */
function tuple(values: readonly (CountedKey | undefined)[]): CountedKey | undefined {
  return values.includes(undefined) ? undefined : (values as CountedKey);
}

function fromName<Req>(where: string, given: unknown, sources: KeySources<Req>, match: CompiledMatch | undefined): KeySource<Req> {
  if (typeof given !== "string") throw unknownKey(where, given, sources);
  const { name, secret } = parseKeyName(given);
  const of = Object.hasOwn(sources.keys, name)
    ? fromFunction(sources.keys[name] as KeyFunction<Req>, sources, match)
    : (fromHeader(name, sources) ?? (secret ? undefined : fromRequest(name, sources, match)));
  if (of === undefined) throw unknownKey(where, given, sources);
  return { of: secret ? digested(of, sources.digests) : of, secrecy: secret, addresses: name === "ip" };
}

/** A key as somebody names it to a limiter, with each address as the rule counts it: in any notation, or as events show it. */
export function withAddresses<Req>({ addresses }: KeySource<Req>, key: Key, ipv6Prefix: number): Key {
  const counted = <Part>(part: Part): Part | string => (typeof part === "string" ? (namedAddress(part, ipv6Prefix) ?? part) : part);
  if (!Array.isArray(key)) return addresses === true ? counted(key) : key;
  return typeof addresses === "boolean" ? key : (key as KeyPart[]).map((part, i) => (addresses[i] === true ? counted(part) : part));
}

function fromRequest<Req>(name: string, sources: KeySources<Req>, match: CompiledMatch | undefined): PlainSource<Req> | undefined {
  switch (name) {
    case "ip":
      return (request) => sources.ip(request);
    case "route":
      return (request) => routeOf(request, sources, match);
    case "global":
      return () => "global";
    default:
      return undefined;
  }
}

function fromHeader<Req>(name: string, sources: KeySources<Req>): PlainSource<Req> | undefined {
  const header = name.startsWith(headerMark) ? name.slice(headerMark.length).toLowerCase() : undefined;
  return isHeaderName(header) ? (request) => sources.header(request, header) || undefined : undefined;
}

function digested<Req>(of: PlainSource<Req>, digests: KeyDigests): Source<Req> {
  const digest = (key: Key | undefined): KeyDigest | undefined => (key === undefined ? undefined : digests.digest(key));
  return (request) => andThen<Key | undefined, KeyDigest | undefined>(of(request), digest);
}

function fromFunction<Req>(key: KeyFunction<Req>, sources: KeySources<Req>, match: CompiledMatch | undefined): PlainSource<Req> {
  return (request) => {
    // An address that is promised must be there before the key function is called, if that wants to be told.
    const ip = key.length < 2 ? undefined : sources.ip(request);
    if (isPromise(ip)) return ip.then((address) => key(request, new LazyInfo(request, sources, match, () => address)));
    return key(request, new LazyInfo(request, sources, match, key.length < 2 ? () => sources.ip(request) : () => ip));
  };
}

/** A key function that does not ask for the address must not fail for want of one. */
class LazyInfo<Req> implements KeyInfo {
  readonly #request: Req;
  readonly #sources: KeySources<Req>;
  readonly #match: CompiledMatch | undefined;
  readonly #ip: () => unknown;

  constructor(request: Req, sources: KeySources<Req>, match: CompiledMatch | undefined, ip: () => unknown) {
    this.#request = request;
    this.#sources = sources;
    this.#match = match;
    this.#ip = ip;
  }

  get ip(): string {
    const ip = this.#ip();
    if (typeof ip === "string") return ip;
    throw noClientIp();
  }

  get route(): string {
    return routeOf(this.#request, this.#sources, this.#match);
  }
}

function routeOf<Req>(request: Req, sources: KeySources<Req>, match: CompiledMatch | undefined): string {
  const own = match?.paths === undefined ? undefined : match.pattern(readingsOf(sources.path(request)));
  const route = own === undefined || own.includes("*") ? (sources.route(request) ?? own) : own;
  if (route !== undefined) return route;
  throw new FloodgateError(
    "FLOODGATE_NO_ROUTE",
    'The key "route" is the pattern that matched, which the framework knows only for a middleware on a route. Mount it there (app.get("/users/:id", rateLimit(...), handler)), or give the rule a match with a path.',
  );
}

export function noClientIp(): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_NO_CLIENT_IP",
    "The request has no client IP address to count by: it may have come over a Unix socket, a proxy may have sent an invalid address, or the client is gone. Set the framework's proxy setting, give `clientIp`, use another `key`, or say with `onMissingKey` what then.",
  );
}

function unknownKey<Req>(where: string, key: unknown, sources: KeySources<Req>): FloodgateError {
  const own = Object.keys(sources.keys);
  const known = [...builtIn, ...own];
  const near = typeof key === "string" ? nearest(key, [...known, ...own.map((name) => secretMark + name)]) : undefined;
  const isBuiltInSecret = typeof key === "string" && key.startsWith(secretMark) && builtIn.includes(key.slice(secretMark.length));
  const hint = isBuiltInSecret ? " `secret:` goes before a header or one of your own keys." : "";
  return new FloodgateError(
    "FLOODGATE_UNKNOWN_KEY",
    `${where}: \`key\` must be a function of the request, a name or a tuple of names (${known.join(", ")}, header:<name>, secret:<name>), but was ${shown(key)}.${near === undefined ? hint : ` Did you mean ${shown(near)}?`} Define your own names in \`keys\`.`,
  );
}
