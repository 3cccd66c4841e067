import { getOrMake, type RequestReader, sentPath } from "@floodgate/core/adapter";
import type { FieldReader, LogFormat, LogRequest } from "../formats/log-format.js";
import { Copies } from "../read/lines.js";
import type { Clients } from "./clients.js";

/**
 * Reads requests of logs as the adapters read those of their frameworks.
 * @param known the headers that rules read, in lower case. The others are not looked for, because their lines are not kept.
 */
export function logReader(clients: Clients, known: ReadonlySet<string>, fields: FieldReaders): RequestReader<LogRequest> {
  return {
    method: ({ method }) => method,
    path: ({ target }) => (target.startsWith("/") ? target : sentPath(target)),
    header: (request, name) => (known.has(name) ? fields.read(request, `header:${name}`) : undefined),
    remoteAddress: (request) => clients.addressOf(request),
    clientIp: (request) => clients.addressOf(request),
    // The log has the client's address already, so no proxy header is read.
    trustsProxy: () => true,
    // A log has no routes.
    route: () => undefined,
    decisionEvents: false,
    // A request is decided by many replays, each as if it were the only one.
    identity: () => ({}),
  };
}

/** The values of fields as users name them: `$http_x_user`, `header:x-user`, `req.user.id`, `cs-username`. */
export class FieldReaders {
  readonly #unknown: Set<string>;
  readonly #found = new Set<string>();
  readonly #readers = new WeakMap<LogFormat, Map<string, FieldReader | undefined>>();
  readonly #copies = new Copies();

  /** @param unknown gets the fields that no request has had so far. */
  constructor(unknown: Set<string>) {
    this.#unknown = unknown;
  }

  read({ format, line }: LogRequest, name: string): string | undefined {
    const readers = getOrMake(this.#readers, format, () => new Map());
    let reader = readers.get(name);
    if (reader === undefined && !readers.has(name)) {
      reader = name.startsWith("header:") ? format.header(name.slice("header:".length).toLowerCase()) : format.field(name);
      readers.set(name, reader);
      if (!this.#found.has(name)) this.#unknown.add(name);
    }
    const value = reader?.(line);
    if (value === undefined) return undefined;
    if (this.#unknown.delete(name)) this.#found.add(name);
    return this.#copies.of(value);
  }
}
