import { type RequestReader, sentPath } from "@floodgate/core/adapter";
import type { FieldReader, LogFormat, LogRequest } from "../formats/log-format.js";
import { Copies } from "../read/lines.js";
import type { Clients } from "./clients.js";

/**
 * Reads requests of logs as the adapters read those of their frameworks.
 * @param known the headers that rules read, in lower case. The others are not looked for: the log may not be kept for them.
 * @param unknown gets the headers that a log does not have.
 */
export function logReader(clients: Clients, known: ReadonlySet<string>, unknown: Set<string>): RequestReader<LogRequest> {
  const headers = new FieldReaders(
    (format, name) => format.header(name),
    (name) => unknown.add(`header:${name}`),
  );
  return {
    method: ({ method }) => method,
    path: ({ target }) => (target.startsWith("/") ? target : sentPath(target)),
    header: (request, name) => (known.has(name) ? headers.read(request, name) : undefined),
    remoteAddress: (request) => clients.addressOf(request),
    clientIp: (request) => clients.addressOf(request),
    // The log has the client's address already, so no proxy header is read.
    trustsProxy: () => true,
    // A log has no routes.
    route: () => undefined,
    decisionEvents: false,
  };
}

/** Readers of fields, made once for each format. */
export class FieldReaders {
  readonly #make: (format: LogFormat, name: string) => FieldReader | undefined;
  readonly #lacks: (name: string) => void;
  readonly #readers = new WeakMap<LogFormat, Map<string, FieldReader | undefined>>();
  readonly #copies = new Copies();

  /** @param lacks called with each field that a format lacks. */
  constructor(make: (format: LogFormat, name: string) => FieldReader | undefined, lacks: (name: string) => void) {
    this.#make = make;
    this.#lacks = lacks;
  }

  read({ format, line }: LogRequest, name: string): string | undefined {
    let readers = this.#readers.get(format);
    if (readers === undefined) {
      readers = new Map();
      this.#readers.set(format, readers);
    }
    let reader = readers.get(name);
    if (reader === undefined && !readers.has(name)) {
      reader = this.#make(format, name);
      readers.set(name, reader);
      if (reader === undefined) this.#lacks(name);
    }
    const value = reader?.(line);
    return value === undefined ? undefined : this.#copies.of(value);
  }
}

/** The value of a field that a user has named: `$http_x_user`, `header:x-user`, `req.user.id`, `cs-username`. */
export function namedFields(unknown: Set<string>): FieldReaders {
  return new FieldReaders(
    (format, name) => (name.startsWith("header:") ? format.header(name.slice("header:".length).toLowerCase()) : format.field(name)),
    (name) => unknown.add(name),
  );
}
