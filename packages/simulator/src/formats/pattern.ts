import type { FloodgateError } from "@floodgate/core";
import { invalidOption } from "@floodgate/core/rules";
import type { FieldReader, LogFormat, LogRequest, Skip } from "./log-format.js";
import { lastAddress, methodOf, parseRequestLine, type RequestLine, unescaped } from "./request-line.js";
import { parseClfTime, parseEpoch, parseIsoTime, remembered } from "./time.js";

/** A variable of a pattern, and the text that ends its value. */
interface Part {
  readonly name: string;
  /** The empty string for the last variable of a line. */
  readonly end: string;
}

const addressNames = ["remote_addr", "client_addr_port", "realip_remote_addr", "http_x_forwarded_for"];
const timeParsers: Readonly<Record<string, (text: string) => number | undefined>> = {
  time_local: parseClfTime,
  time_iso8601: parseIsoTime,
  msec: (text) => (/^\d+(?:\.\d+)?$/.test(text) ? parseEpoch(Number(text)) : undefined),
};

const requestParts: Readonly<Record<string, (request: RequestLine | undefined) => string | undefined>> = {
  request_method: (request) => request?.method,
  request_uri: (request) => request?.target,
  uri: (request) => request?.target.split("?", 1)[0],
  args: (request) => request?.target.split("?").slice(1).join("?"),
};

/**
 * A format by a pattern in the syntax of nginx's `log_format`: `$remote_addr [$time_local] "$request"`. It needs a time, and a request. The
 * line may go on after the pattern.
 */
export class PatternFormat implements LogFormat {
  readonly name: string;
  readonly #start: string;
  readonly #parts: readonly Part[];
  readonly #time: number;
  readonly #address: number;
  readonly #request: number;
  readonly #method: number;
  readonly #target: number;
  /** How many variables a request needs: the rest of a line is read only for fields. */
  readonly #needed: number;
  readonly #parseTime: (text: string) => number | undefined;
  /** Where the value of each variable of the current line begins and ends. */
  readonly #from: number[];
  readonly #to: number[];

  /**
   * @param address the variable with the client's address. Default: the usual ones.
   * @throws FloodgateError if the pattern lacks what a request needs, or is ambiguous.
   */
  constructor(name: string, pattern: string, address?: string) {
    this.name = name;
    const { start, parts } = parsePattern(pattern);
    const find = (...names: readonly string[]): number => parts.findIndex((part) => names.includes(part.name));
    this.#start = start;
    this.#parts = parts;
    const timeName = Object.keys(timeParsers).find((time) => find(time) >= 0);
    this.#time = timeName === undefined ? -1 : find(timeName);
    this.#parseTime = remembered(timeParsers[timeName ?? ""] ?? (() => undefined));
    this.#address = address === undefined ? addressNames.reduce((found, own) => (found < 0 ? find(own) : found), -1) : find(address);
    this.#request = find("request");
    this.#method = find("request_method");
    this.#target = this.#request >= 0 ? -1 : find("request_uri", "uri");
    if (this.#time < 0) throw lacks(pattern, "a time: $time_local, $time_iso8601 or $msec");
    if (this.#request < 0 && this.#target < 0) throw lacks(pattern, "the request: $request, or $request_method and $request_uri");
    if (address !== undefined && this.#address < 0) throw lacks(pattern, `$${address}, which is said to be the client's address`);
    this.#needed = Math.max(this.#time, this.#address, this.#request, this.#method, this.#target) + 1;
    this.#from = parts.map(() => 0);
    this.#to = parts.map(() => 0);
  }

  parse(line: string): LogRequest | Skip {
    if (this.#split(line, this.#needed) < this.#needed) return isBlank(line) ? "blank" : "malformed";
    const timeMs = this.#parseTime(line.slice(this.#from[this.#time], this.#to[this.#time]));
    if (timeMs === undefined) return "no-time";
    const request = this.#request >= 0 ? parseRequestLine(this.#value(line, this.#request)) : this.#requestOf(line);
    if (request === undefined) return "no-request";
    const address = this.#addressOf(line);
    // The line begins with something that the pattern does not have.
    if (address !== undefined && address.indexOf(" ") >= 0) return "malformed";
    return { timeMs, address, method: request.method, target: request.target, line, format: this };
  }

  fit(line: string): number {
    const count = this.#parts.length;
    return this.#split(line, count) === count && typeof this.parse(line) === "object" ? count : 0;
  }

  field(name: string): FieldReader | undefined {
    const variable = name.replace(/^\$/, "");
    const at = this.#parts.findIndex((part) => part.name === variable);
    if (at < 0) return this.#partOfRequest(variable);
    return (line) => {
      if (this.#split(line as string, at + 1) <= at) return undefined;
      const value = this.#value(line as string, at);
      return value === "-" || value === "" ? undefined : unescaped(value);
    };
  }

  /** nginx's variables for parts of the request line, where the log has only the whole line. */
  #partOfRequest(variable: string): FieldReader | undefined {
    const part = requestParts[variable];
    const request = part && this.field("request");
    return request && ((line) => part(parseRequestLine(request(line) ?? "")));
  }

  header(lowerCaseName: string): FieldReader | undefined {
    const variable = lowerCaseName.replaceAll("-", "_");
    return this.field(`http_${variable}`) ?? (variable === "host" ? this.field("host") : undefined);
  }

  #requestOf(line: string): { method: string; target: string } | undefined {
    const method = this.#method < 0 ? "GET" : methodOf(this.#value(line, this.#method));
    const target = unescaped(this.#value(line, this.#target));
    return method === undefined || target === "" || target === "-" ? undefined : { method, target };
  }

  #addressOf(line: string): string | undefined {
    if (this.#address < 0) return undefined;
    const value = this.#value(line, this.#address);
    if (value === "-" || value === "") return undefined;
    const { name } = this.#parts[this.#address] as Part;
    if (name === "client_addr_port") return value.slice(0, value.lastIndexOf(":")).replace(/^\[|\]$/g, "");
    return lastAddress(value);
  }

  #value(line: string, part: number): string {
    return line.slice(this.#from[part], this.#to[part]);
  }

  /** Finds the values of the first `count` variables. Returns how many it has found. */
  #split(line: string, count: number): number {
    if (!line.startsWith(this.#start)) return 0;
    let at = this.#start.length;
    for (let i = 0; i < count; i++) {
      const { end } = this.#parts[i] as Part;
      const found = end === "" ? line.length : indexOfEnd(line, end, at);
      if (found < 0) return i;
      this.#from[i] = at;
      this.#to[i] = found;
      at = found + end.length;
    }
    return count;
  }
}

/** Where a value ends. A quote after a backslash is part of the value. */
function indexOfEnd(line: string, end: string, from: number): number {
  const isQuote = end.startsWith('"');
  let found = line.indexOf(end, from);
  while (isQuote && found >= 0 && isEscaped(line, found, from)) found = line.indexOf(end, found + 1);
  // The line may end sooner than the pattern.
  return found < 0 && isQuote && end.length > 1 && line.length > from && line.endsWith('"') ? line.length - 1 : found;
}

const backslash = 0x5c;

function isEscaped(line: string, at: number, first: number): boolean {
  let from = at;
  while (from > first && line.charCodeAt(from - 1) === backslash) from--;
  return (at - from) % 2 === 1;
}

export function isBlank(line: string): boolean {
  return line === "" || line.trim() === "";
}

function parsePattern(pattern: string): { start: string; parts: Part[] } {
  const names = /\$(?:\{(\w+)\}|(\w+))/g;
  const parts: Part[] = [];
  let start: string | undefined;
  let name = "";
  let from = 0;
  for (const match of pattern.matchAll(names)) {
    const between = pattern.slice(from, match.index);
    if (start === undefined) start = between;
    else {
      if (between === "") {
        throw invalidOption(
          `The log format has $${name} and $${match[1] ?? match[2]} without a character between them, so nobody can say where one ends. Write it as in the nginx configuration.`,
        );
      }
      parts.push({ name, end: between });
    }
    name = (match[1] ?? match[2]) as string;
    from = match.index + match[0].length;
  }
  if (start === undefined) throw lacks(pattern, "any variable such as $remote_addr");
  parts.push({ name, end: pattern.slice(from) });
  return { start, parts };
}

function lacks(pattern: string, what: string): FloodgateError {
  return invalidOption(
    `The log format ${JSON.stringify(pattern)} lacks ${what}. Write --format '$remote_addr - $remote_user [$time_local] "$request" $status'.`,
  );
}
