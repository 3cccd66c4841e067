import type { FieldReader, LogFormat, LogRequest, Skip } from "./log-format.js";
import { isBlank } from "./pattern.js";
import { lastAddress, methodOf, parseRequestLine, type RequestLine, withoutPort } from "./request-line.js";
import { parseAnyTime } from "./time.js";

/** The names of the fields that a request needs, the likeliest first. A name is a key, or a path of keys: `request.remote_ip`. */
export interface JsonFields {
  readonly time: readonly string[];
  readonly address: readonly string[];
  readonly method: readonly string[];
  readonly target: readonly string[];
  /** A whole request line, `GET / HTTP/1.1`, if there is no method or target. */
  readonly request?: readonly string[];
  /** Objects that hold request headers. */
  readonly headers?: readonly string[];
}

/** One JSON object per line. */
export class JsonFormat implements LogFormat {
  readonly name: string;
  readonly #time: AnyField;
  readonly #address: AnyField;
  readonly #method: AnyField;
  readonly #target: AnyField;
  readonly #request: AnyField;
  readonly #headers: readonly Path[];

  constructor(name: string, fields: JsonFields) {
    this.name = name;
    this.#time = new AnyField(fields.time);
    this.#address = new AnyField(fields.address);
    this.#method = new AnyField(fields.method);
    this.#target = new AnyField(fields.target);
    this.#request = new AnyField(fields.request ?? []);
    this.#headers = (fields.headers ?? []).map(pathOf);
  }

  /** The object that a line stands for. */
  protected read(text: string): object | undefined {
    return parseObject(text);
  }

  parse(text: string): LogRequest | Skip {
    const line = this.read(text);
    if (line === undefined) return isBlank(text) ? "blank" : "malformed";
    const request = this.#requestOf(line);
    if (request === undefined) return "no-request";
    const timeMs = parseAnyTime(this.#time.of(line));
    if (timeMs === undefined) return "no-time";
    return { timeMs, address: this.#addressOf(line), method: request.method, target: request.target, line, format: this };
  }

  fit(text: string): number {
    const parsed = this.parse(text);
    if (typeof parsed === "string") return 0;
    return [this.#time, this.#address, this.#method, this.#target, this.#request].filter((field) => field.of(parsed.line) !== undefined)
      .length;
  }

  field(name: string): FieldReader {
    const path = pathOf(name.replace(/^\$/, ""));
    return (line) => textOf(valueAt(line, path));
  }

  header(lowerCaseName: string): FieldReader {
    const variable = lowerCaseName.replaceAll("-", "_");
    const single = new AnyField([`http_${variable}`, lowerCaseName, variable, ...(headerFields[lowerCaseName] ?? [])]);
    return (line) => {
      for (const path of this.#headers) {
        const found = caseless(valueAt(line, path), lowerCaseName);
        if (found !== undefined) return found;
      }
      // Traefik writes each header as a field of its own.
      return caseless(line, `request_${lowerCaseName}`) ?? textOf(single.of(line));
    };
  }

  #requestOf(line: object): RequestLine | undefined {
    const method = this.#method.of(line);
    const target = this.#target.of(line);
    if (typeof method === "string" && typeof target === "string" && target !== "") {
      const known = methodOf(method);
      return known === undefined ? undefined : { method: known, target };
    }
    const request = this.#request.of(line);
    return typeof request === "string" ? parseRequestLine(request) : undefined;
  }

  #addressOf(line: object): string | undefined {
    const text = textOf(this.#address.of(line));
    if (text === undefined || text === "" || text === "-") return undefined;
    return withoutPort(lastAddress(text));
  }
}

/** Other names of some headers. */
const headerFields: Readonly<Record<string, readonly string[]>> = {
  "user-agent": ["userAgent", "user_agent.original", "agent", "httpRequest.userAgent"],
  referer: ["referrer", "httpRequest.referer"],
  host: ["request.host", "RequestHost"],
};

type Path = readonly string[];

function pathOf(name: string): Path {
  return name.includes(".") ? [name, ...name.split(".")] : [name];
}

function valueAt(line: unknown, path: Path): unknown {
  const whole = own(line, path[0] as string);
  if (whole !== undefined || path.length === 1) return whole;
  let value = line;
  for (let i = 1; i < path.length; i++) value = own(value, path[i] as string);
  return value;
}

function own(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[key] ?? undefined;
}

/** The first of several fields that a line has. */
class AnyField {
  readonly #paths: readonly Path[];

  constructor(names: readonly string[]) {
    this.#paths = names.map(pathOf);
  }

  of(line: unknown): unknown {
    for (const path of this.#paths) {
      const value = valueAt(line, path);
      if (value !== undefined) return value;
    }
    return undefined;
  }
}

function caseless(value: unknown, lowerCaseName: string): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const name of Object.keys(value)) {
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) return textOf(own(value, name));
  }
  return undefined;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "string")) return value.join(", ");
  return undefined;
}

function parseObject(text: string): object | undefined {
  const start = text.indexOf("{");
  if (start < 0 || text.slice(0, start).trim() !== "") return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
