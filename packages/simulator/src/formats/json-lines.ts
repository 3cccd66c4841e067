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
  readonly #paths: Readonly<Record<keyof JsonFields, readonly Path[]>>;

  constructor(name: string, fields: JsonFields) {
    const paths = Object.entries({ request: [], headers: [], ...fields }).map(([field, names]) => [field, names.map(pathOf)]);
    this.name = name;
    this.#paths = Object.fromEntries(paths);
  }

  /** The object that a line stands for. */
  protected read(text: string): object | undefined {
    if (!/^\s*\{/.test(text)) return undefined;
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  }

  parse(text: string): LogRequest | Skip {
    const line = this.read(text);
    if (line === undefined) return isBlank(text) ? "blank" : "malformed";
    const request = this.#requestOf(line);
    if (request === undefined) return "no-request";
    const timeMs = parseAnyTime(firstAt(line, this.#paths.time));
    if (timeMs === undefined) return "no-time";
    return { timeMs, address: this.#addressOf(line), method: request.method, target: request.target, line, format: this };
  }

  fit(text: string): number {
    const parsed = this.parse(text);
    if (typeof parsed === "string") return 0;
    const { headers: _, ...fields } = this.#paths;
    return Object.values(fields).filter((paths) => firstAt(parsed.line, paths) !== undefined).length;
  }

  field(name: string): FieldReader {
    const path = pathOf(name.replace(/^\$/, ""));
    return (line) => textOf(valueAt(line, path));
  }

  header(lowerCaseName: string): FieldReader {
    const variable = lowerCaseName.replaceAll("-", "_");
    const single = [`http_${variable}`, lowerCaseName, variable, ...(headerFields[lowerCaseName] ?? [])].map(pathOf);
    return (line) => {
      for (const path of this.#paths.headers) {
        const found = caseless(valueAt(line, path), lowerCaseName);
        if (found !== undefined) return found;
      }
      // Traefik writes each header as a field of its own.
      return caseless(line, `request_${lowerCaseName}`) ?? textOf(firstAt(line, single));
    };
  }

  #requestOf(line: object): RequestLine | undefined {
    const method = firstAt(line, this.#paths.method);
    const target = firstAt(line, this.#paths.target);
    if (typeof method === "string" && typeof target === "string" && target !== "") {
      const known = methodOf(method);
      return known === undefined ? undefined : { method: known, target };
    }
    const request = firstAt(line, this.#paths.request);
    return typeof request === "string" ? parseRequestLine(request) : undefined;
  }

  #addressOf(line: object): string | undefined {
    const text = textOf(firstAt(line, this.#paths.address));
    if (text === undefined || text === "" || text === "-") return undefined;
    return withoutPort(lastAddress(text));
  }
}

/** Other names of some headers. */
const headerFields: Readonly<Record<string, readonly string[]>> = {
  "user-agent": ["userAgent", "user_agent.original", "agent", "httpRequest.userAgent", "ClientRequestUserAgent"],
  referer: ["referrer", "httpRequest.referer"],
  host: ["request.host", "RequestHost", "ClientRequestHost"],
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

/** The first of several fields that a line has. An object is no value: `url` may hold `path`. */
function firstAt(line: unknown, paths: readonly Path[]): unknown {
  for (const path of paths) {
    const value = valueAt(line, path);
    if (value !== undefined && (typeof value !== "object" || Array.isArray(value))) return value;
  }
  return undefined;
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
