import { type RateLimitOptions, TrustedProxies } from "@floodgate/core/adapter";
import { parseRedisUrl } from "@floodgate/store-redis";
import { z } from "zod";
import { isUnix, parseAddress } from "./address.js";

/** What values a setting takes: how they are checked, and how they are written as a flag or an environment variable. */
export interface ValueType<T> {
  /** Checks a value of the config file or of code. */
  readonly schema: z.ZodType<T>;
  /** What it must be, for error messages: "must be <what>". */
  readonly what: string;
  /** Stands for the value in `--help`. A flag without one takes no value. */
  readonly placeholder?: string;
  /** Whether it is the path of a file. It is relative to the file that it is written in. */
  readonly isPath?: boolean;
  /** Whether the flag may be repeated. */
  readonly repeats?: boolean;
  /** What else is wrong with a value of the right type, as a sentence. Undefined if it is right. */
  reason?(value: T): string | undefined;
  /** What a wrong text probably means, written in the right form. */
  meant?(text: string): string | undefined;
  /** The value that a flag or an environment variable means. `schema` checks it. */
  fromText(text: string): unknown;
}

export function text(what: string, placeholder: string, pattern: RegExp = /./s): ValueType<string> {
  return { schema: z.string().regex(pattern), what, placeholder, fromText: asIs };
}

export function file(): ValueType<string> {
  return { schema: z.string().min(1), what: "the path of a file", placeholder: "file", isPath: true, fromText: asIs };
}

/** A whole number between two bounds. */
export function whole(what: string, placeholder: string, least: number, most: number = Number.MAX_SAFE_INTEGER): ValueType<number> {
  const bounds = `${what}: a whole number from ${least} to ${most}`;
  return { schema: z.number().int().min(least).max(most), what: bounds, placeholder, fromText: asNumber };
}

/** A time in milliseconds that a timer can hold. */
export function milliseconds(least = 1): ValueType<number> {
  return whole("a time in milliseconds", "ms", least, 2 ** 31 - 1);
}

export function flag(): ValueType<boolean> {
  return { schema: z.boolean(), what: "true or false", meant: meantFlag, fromText: asFlag };
}

export function choice<const Word extends string>(...words: readonly [Word, ...Word[]]): ValueType<Word> {
  return {
    schema: z.enum(words) as unknown as z.ZodType<Word>,
    what: `one of ${words.join(", ")}`,
    placeholder: words.join("|"),
    fromText: asIs,
  };
}

/** A list of words out of a few: `a,b` as a flag; an empty text is an empty list. */
export function choices<const Word extends string>(...words: readonly [Word, ...Word[]]): ValueType<readonly Word[]> {
  return {
    schema: z.array(z.enum(words)) as unknown as z.ZodType<readonly Word[]>,
    what: `a list of ${words.join(", ")}`,
    placeholder: "names",
    fromText: asList,
  };
}

/** Addresses and ranges of peers, and the word `unix`. */
export function peers(): ValueType<readonly string[]> {
  const what = "a list of addresses, ranges and the words loopback, linklocal, uniquelocal and unix";
  const reason = (value: readonly string[]): string | undefined => {
    try {
      new TrustedProxies(
        "`trustedPeers",
        value.filter((peer) => peer !== "unix"),
      );
      return undefined;
    } catch (error) {
      // The settings count no hops.
      return (error as Error).message
        .replace(/^`trustedPeers\[\d+\]`/, "an entry")
        .replace('"uniquelocal"', '"uniquelocal", "unix"')
        .replace(/, or [^,.]*\btrustedHops: 1[^.]*/, "");
    }
  };
  return { schema: z.array(z.string().min(1)), what, placeholder: "peers", reason, fromText: asList };
}

/** A map of words to words: `a=b,c=d` as a flag. */
export function pairs(what: string, placeholder: string, value: RegExp): ValueType<Readonly<Record<string, string>>> {
  return { schema: z.record(z.string(), z.string().regex(value)), what, placeholder, repeats: true, fromText: asPairs };
}

/** An address to listen on. */
export function address(): ValueType<string> {
  return {
    schema: z.string().refine((text) => parseAddress(text) !== undefined),
    what: "host:port, or unix:/path of a socket",
    placeholder: "address",
    meant: (text) => (/^\d{1,5}$/.test(text) && Number(text) <= 65535 ? `127.0.0.1:${text}` : undefined),
    fromText: asIs,
  };
}

export function redisUrl(): ValueType<string> {
  return {
    schema: z.string().refine((text) => parseRedisUrl(text) !== undefined),
    what: "a URL of Redis: redis:// or rediss:// with host, port and the number of the database, or unix:// with the path of its socket",
    placeholder: "url",
    meant: (text) => (isHostAndPort(text) ? `redis://${text}` : undefined),
    fromText: asIs,
  };
}

/** The same, or false for nothing. */
export function orFalse<T>(type: ValueType<T>): ValueType<T | false> {
  return {
    ...type,
    schema: z.union([type.schema, z.literal(false)]),
    what: `${type.what}, or false`,
    meant: (text) => (meantFlag(text) === "false" ? "false" : type.meant?.(text)),
    fromText: (text) => (text === "false" ? false : type.fromText(text)),
  };
}

/** The formats of rate limit headers, as `rateLimit` takes them. */
export type HeadersSetting = Exclude<RateLimitOptions<never, never>["headers"], undefined>;

const headerWords = ["standard", "draft-7", "draft-6", "legacy"] as const;

export function headerFormats(): ValueType<HeadersSetting> {
  return orFalse({
    schema: z.union([z.enum(headerWords), z.tuple([z.enum(["standard", "draft-7", "draft-6"]), z.literal("legacy")])]) as z.ZodType<
      Exclude<HeadersSetting, false>
    >,
    what: `one of ${headerWords.join(", ")}, or a draft with legacy`,
    placeholder: "formats",
    fromText: (text) => (text.includes(",") ? text.split(",").map((word) => word.trim()) : text),
  });
}

/** Whether a text is `host:port`, without a scheme. Such a URL has no password. */
function isHostAndPort(text: string): boolean {
  return /^(?:\[[\da-f:]+\]|[\w.-]+):\d{1,5}$/i.test(text);
}

/** The URL of an HTTP server, or its Unix socket. */
export function upstreamUrl(): ValueType<string> {
  const reason = (value: string): string | undefined => {
    if (isUnix(value)) return undefined;
    const { search, hash, username, password } = new URL(value);
    if (search !== "" || hash !== "") return "it has a query or a fragment, which no request could keep. Remove it.";
    return username === "" && password === "" ? undefined : "it holds a user or a password, which is not sent. Remove it.";
  };
  return {
    ...text("a URL: http://host:port, https://host or unix:/path", "url"),
    schema: z
      .string()
      .refine((text) => (isUnix(text) ? text.length > "unix:".length : /^https?:\/\/\S+$/.test(text) && URL.canParse(text))),
    reason,
    meant: (given) => (isHostAndPort(given) ? `http://${given}` : undefined),
  };
}

function asIs(text: string): string {
  return text;
}

function asNumber(text: string): unknown {
  return /^\d{1,16}$/.test(text) ? Number(text) : text;
}

function asFlag(text: string): unknown {
  return text === "true" ? true : text === "false" ? false : text;
}

/** What other tools and YAML 1.1 take for true and false. */
function meantFlag(text: string): string | undefined {
  if (/^(?:true|yes|on|1)$/i.test(text)) return "true";
  return /^(?:false|no|off|0)$/i.test(text) ? "false" : undefined;
}

function asList(text: string): string[] {
  return text
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");
}

function asPairs(text: string): unknown {
  const parts = asList(text).map((part) => {
    const equals = part.indexOf("=");
    return equals < 1 ? undefined : ([part.slice(0, equals).trim(), part.slice(equals + 1).trim()] as const);
  });
  return parts.includes(undefined) ? text : Object.fromEntries(parts as [string, string][]);
}
