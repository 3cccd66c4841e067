// biome-ignore-all lint/suspicious/noControlCharactersInRegex: two stand for encoded separators, and servers treat the others differently

import { hexDigit } from "../support/ip.js";
import { utf8 } from "../support/runtime.js";

/** Stands for any number of unknown segments. In a rule's path, the `*`. */
export const anySegments: unique symbol = Symbol("*");

/** A request's path; or several, if the adapter cannot be certain which path the routers follow. */
export type RequestPath = string | readonly PossiblePath[];

/** A path; or a part of one, and where unknown segments may be added. */
export type PossiblePath = string | { readonly path: string; readonly unknown?: "before" | "after" };

/** A segment that some servers drop: one that a `..` may remove, or one way of several to read the same characters. */
export interface OptionalSegment {
  readonly optional: string;
}

/** Segments of a request's path. `anySegments` stands for unknown segments, and matches everything. */
export type Reading = readonly (string | OptionalSegment | typeof anySegments)[];

/** All readings of a path. */
export type Readings = readonly Reading[];

/** Of a longer path only the start and the end are read, so that no path takes long to match. */
const maxSegments = 64;
const segmentsAtEnd = 4;

/** An unusual path with more characters has one reading: its usual start, any segments, and its usual end. */
const maxUnusual = 1024;
const endOfLong = 256;
/** How many of a path's segments are split one after the other. */
const maxSplits = 4;

/**
 * What servers read in different ways: separators that are not a `/`, empty segments, parameters (`;x`), a dot or a space at the end of a
 * segment, control characters, bytes that are sent as they are, and a `%` or `?` that was encoded.
 */
const unusual = /[\\;\0-\x1f\x7f-\xff]|\/\/|[. ](?:\/|$)|%(?:2[5ef]|3[bf]|5c|[01][\da-f]|7f|20(?:\/|$))/i;

/**
 * Reads a request's path as written, like routers do. Handlers and other servers may see another path: they resolve it as a URL or as a file
 * system path, decode it before or after that, and drop parts of segments. A rule matches if any reading matches; the first reading that
 * matches gives the pattern. The work is linear in the path's length, and its readings are few, however it is written.
 */
export function readingsOf(path: RequestPath): Readings {
  if (typeof path === "string") return readingsOfText(path);
  return path.flatMap((possible) => {
    const readings = readingsOfText(textOf(possible));
    const unknown = typeof possible === "string" ? undefined : possible.unknown;
    if (unknown === undefined) return readings;
    return readings.map((reading): Reading => (unknown === "before" ? [anySegments, ...reading] : [...reading, anySegments]));
  });
}

/**
 * Whether servers read the path in ways that no list exhausts: it has a dot segment, a backslash, a control character or a byte that is not
 * UTF-8, in any spelling; or two of these: an empty segment, an encoded slash, a `;`, a segment that ends with a dot or a space.
 */
export function isAmbiguous(path: RequestPath): boolean {
  return [path].flat().some((possible) => isAmbiguousText(withoutQuery(textOf(possible))));
}

const textOf = (possible: PossiblePath): string => (typeof possible === "string" ? possible : possible.path);

function isAmbiguousText(path: string): boolean {
  if (!path.includes("%") && !unusual.test(path)) return false;
  // The marks of separators are control characters.
  if (/%(?![\da-f]{2})|%0[12]|[\x01\x02]/i.test(path)) return true;
  const text = decoded(withMarks(path));
  return /[\\\x02\0\x03-\x1f\x7f\ufffd]/.test(text) || hasManyReadings(text);
}

const withoutQuery = (target: string): string => {
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
};

/** h3 1 decodes a path before it cuts the query off. The `;` stands for it: like parameters, it may be left out or not. */
const withoutEncodedQuery = (path: string): string => path.replace(/%3f.*/i, ";");

function readingsOfText(target: string): Readings {
  const path = withoutQuery(target);
  if (!unusual.test(path)) return [written(decoded(path).toLowerCase())];
  if (path.length > maxUnusual) return [ofLong(path)];
  // To servers that resolve targets as URLs, what follows two slashes is a host.
  return [...new Set([path, withoutEncodedQuery(path), decodedAgain(path), path.replace(/^[/\\]{2,}[^/\\]*/, "")])].flatMap(
    readingsOfUnusual,
  );
}

/** What is left of a path when nothing more can be decoded, with marks for separators that were encoded. Astro decodes it eleven times at most. */
function decodedAgain(path: string): string {
  if (!path.includes("%25")) return path;
  const bytes = utf8(path);
  let end = 0;
  for (const byte of bytes) {
    bytes[end++] = byte;
    for (let code = codeAt(bytes, end - 3); code >= 0; code = codeAt(bytes, end - 3)) {
      end -= 2;
      bytes[end - 1] = code === 0x2f ? 1 : code === 0x5c ? 2 : code;
    }
  }
  return textOfBytes(bytes.subarray(0, end));
}

function readingsOfUnusual(path: string): Reading[] {
  const marked = withMarks(path);
  const readings = readingsOfDecoded(decoded(marked).toLowerCase());
  // Node shows bytes that are sent as they are as one character each.
  if (/[\x80-\xff]/.test(path) && !/[^\0-\xff]/.test(path)) readings.push(...readingsOfDecoded(decodedBytes(marked).toLowerCase()));
  return readings;
}

/** Whether a `..`, or more than one unusual thing, makes more readings than could be listed. */
function hasManyReadings(text: string): boolean {
  const kinds = [/\\/, /\x01/, /\x02/, /\/\//, /;|[. ](?:[/\\\x01\x02]|$)/];
  return dotSegment.test(text) || kinds.filter((kind) => kind.test(text)).length > 1;
}

const dotSegment = /(?:^|[/\\\x01\x02])\.\.? *(?:[/\\\x01\x02;?]|$)/;
const separators = /[/\\\x01\x02]/;

/** @param text in lower case, decoded, with marks for separators that were encoded. */
function readingsOfDecoded(text: string): Reading[] {
  const readings: Reading[] = [];
  addWritten(text, readings);
  if (hasManyReadings(text)) readings.push(ofMany(text));
  else if (/[\\\x01\x02]/.test(text)) addSplit(text, readings);
  else if (/;|[. ](?:\/|$)/.test(text)) readings.push(written(text.split("/").map(bare).join("/")));
  return readings;
}

/** A mount path with parameters may take the first segments as they are, before a handler splits the rest. */
function addSplit(text: string, readings: Reading[]): void {
  let from = 0;
  for (const segment of text.split("/")) {
    if (readings.length > maxSplits) {
      readings.push(ofMany(text));
      return;
    }
    if (separators.test(segment)) addWritten(text.slice(0, from) + text.slice(from).replace(/[\\\x01\x02]/g, "/"), readings);
    from += segment.length + 1;
  }
}

/** Some routers take an empty segment as the value of a parameter, with or without the slash at the end. */
function addWritten(text: string, readings: Reading[]): void {
  readings.push(written(text, unmarked));
  if (!text.includes("//")) return;
  for (const one of new Set([text, text.replace(/\/$/, "")])) readings.push(shortened(one.slice(1).split("/").map(unmarked)));
}

/** Case, empty segments and a trailing slash make no difference, because they make none to routers. */
function written(text: string, spelled = asIs): Reading {
  const segments: string[] = [];
  for (let from = 0; from < text.length; ) {
    const slash = text.indexOf("/", from);
    const to = slash < 0 ? text.length : slash;
    if (to > from) {
      if (segments.length === maxSegments) return shortened(segments, atEnd(text, spelled));
      segments.push(spelled(text.slice(from, to)));
    }
    from = to + 1;
  }
  return segments;
}

function shortened(segments: readonly string[], end = segments.slice(-segmentsAtEnd)): Reading {
  if (segments.length < maxSegments) return segments;
  return [...segments.slice(0, maxSegments - segmentsAtEnd), anySegments, ...end];
}

/** The last segments of a text that has enough of them. */
function atEnd(text: string, spelled: typeof asIs): string[] {
  const segments: string[] = [];
  for (let to = text.length; segments.length < segmentsAtEnd; ) {
    const slash = text.lastIndexOf("/", to - 1);
    if (to > slash + 1) segments.unshift(spelled(text.slice(slash + 1, to)));
    to = slash;
  }
  return segments;
}

/**
 * One reading that stands for all: what stands before the unusual part and cannot be removed, each segment of the unusual part if a server
 * keeps it, and what stands after it.
 */
function ofMany(text: string): Reading {
  const segments = text.replace(/^\/|\/$/g, "").split("/");
  // There is one, except for a `..` before an encoded `?`. A slash at the end is usual, but an empty segment before it is not.
  const first = segments.findIndex(isUnusual);
  const last = segments.findLastIndex(isUnusual);
  const head = segments.slice(0, lowestDepth(segments, first));
  const tail = segments.slice(last + 1);
  if (segments.length <= maxSegments) {
    const between: string[] = [];
    for (const segment of segments.slice(head.length, last + 1)) {
      if (between.length <= maxSegments) between.push(...waysToRead(segment));
    }
    if (head.length + between.length + tail.length <= maxSegments) return [...head, ...between.map((optional) => ({ optional })), ...tail];
  }
  return [...head.slice(0, maxSegments - segmentsAtEnd), anySegments, ...tail.slice(-segmentsAtEnd)];
}

/** How many of the first segments no `..` removes, in whichever way the segments from `first` on are read. */
function lowestDepth(segments: readonly string[], first: number): number {
  let depth = first;
  let lowest = first;
  for (const segment of segments.slice(first)) {
    let isDeeper = false;
    for (const part of segment.split(separators)) {
      if (/^\.\. *(?:;|$)/.test(part)) lowest = Math.min(lowest, --depth);
      else if (!isDeeper && bare(part) !== "") {
        isDeeper = true;
        depth++;
      }
    }
  }
  return Math.max(0, lowest);
}

const isUnusual = (segment: string): boolean => /^$|[\\;\x01\x02]|[. ]$/.test(segment);

/** A segment, and what it is made of for servers that take some of its separators for a slash, or drop its parameters. */
function waysToRead(segment: string): string[] {
  if (!separators.test(segment)) return withBare(segment);
  const ways = [segment, segment.replaceAll("\\", "/")];
  for (const separator of "\x01\\\x02") {
    segment = segment.replaceAll(separator, "/");
    ways.push(segment);
  }
  return [...new Set(ways)].flatMap((way) => way.split("/").flatMap(withBare));
}

function ofLong(path: string): Reading {
  const isRemoving = dotSegment.test(path.includes("%25") ? decodedAgain(path) : decoded(withMarks(path)));
  const usual = isRemoving ? "" : path.slice(0, path.lastIndexOf("/", path.search(unusual)) + 1);
  const head = written(folded(usual)).slice(0, maxSegments - segmentsAtEnd);
  const end = withoutEncodedQuery(path).slice(-endOfLong).replace(/\/$/, "").split("/").slice(1);
  const tail: string[] = [];
  while (tail.length < segmentsAtEnd) {
    const segment = end.pop();
    if (!segment || unusual.test(segment)) break;
    tail.unshift(folded(segment));
  }
  return [...head, anySegments, ...tail];
}

/** A segment without its parameters (Java), and without dots and spaces at its end (Windows, Caddy). */
function bare(segment: string): string {
  const parameters = segment.indexOf(";");
  let end = parameters < 0 ? segment.length : parameters;
  while (segment[end - 1] === "." || segment[end - 1] === " ") end--;
  return segment.slice(0, end);
}

/** A part of a segment, and without what some servers drop of it. */
function withBare(part: string): string[] {
  const without = bare(part);
  return without === part || without === "" ? [unmarked(part)] : [unmarked(part), unmarked(without)];
}

const asIs = (segment: string): string => segment;

const unmarked = (segment: string): string =>
  separators.test(segment) ? segment.replaceAll("\x01", "/").replaceAll("\x02", "\\") : segment;

/** A segment as it is compared: case and percent-encoding make no difference. */
export function folded(segment: string): string {
  return decoded(segment).toLowerCase();
}

/** A global of every runtime. */
declare const TextDecoder: new (encoding: "utf-8", options: { ignoreBOM: true }) => { decode(bytes: Uint8Array): string };

/** Made when it is needed: jsdom in Jest has none, and a new one for each text costs more than to decode it. */
let decoder: { decode(bytes: Uint8Array): string } | undefined;

/** Decodes percent-encoding. Bytes that are not UTF-8 become U+FFFD; a `%` that encodes nothing stays. */
function decoded(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return ofBytes(utf8(text));
  }
}

/** The same, for a text whose characters stand for one byte each. */
function decodedBytes(text: string): string {
  return ofBytes(Uint8Array.from(text, (character) => character.charCodeAt(0)));
}

/** Puts a control character in place of each encoded slash (1) and backslash (2), so that decoding keeps them apart from others. */
function withMarks(path: string): string {
  return path.replace(/%2f/gi, "\x01").replace(/%5c/gi, "\x02");
}

function ofBytes(bytes: Uint8Array): string {
  let end = 0;
  for (let i = 0; i < bytes.length; i++) {
    const code = codeAt(bytes, i);
    bytes[end++] = code < 0 ? (bytes[i] as number) : code;
    if (code >= 0) i += 2;
  }
  return textOfBytes(bytes.subarray(0, end));
}

/** The byte that is percent-encoded at a place; -1 if none is. */
function codeAt(bytes: Uint8Array, at: number): number {
  const high = bytes[at] === 0x25 ? hexDigit(bytes[at + 1]) : -1;
  const low = high < 0 ? -1 : hexDigit(bytes[at + 2]);
  return low < 0 ? -1 : high * 16 + low;
}

function textOfBytes(bytes: Uint8Array): string {
  decoder ??= new TextDecoder("utf-8", { ignoreBOM: true });
  return decoder.decode(bytes);
}
