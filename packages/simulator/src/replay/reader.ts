import { getOrMake, type RequestReader, sentPath } from "@floodgate/core/adapter";
import { ipKey } from "@floodgate/core/rules";
import type { FieldReader, LogFormat, LogRequest } from "../formats/log-format.js";
import { Copies } from "../read/lines.js";

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

const longestName = 255;
/** How many texts are remembered before all are forgotten. */
const remembered = 1 << 17;

/**
 * The addresses of clients. Some logs have host names, or addresses that were made anonymous, where an address should be. Rules count by
 * addresses, so each of these gets one of its own, from a range that no client has (240.0.0.0/4).
 */
export class Clients {
  /** The addresses of texts that were read before. */
  #known = new Map<string, string>();
  readonly #names = new Map<string, string>();
  readonly #byAddress = new Map<string, string>();
  readonly #maxNames: number;

  constructor(maxNames: number) {
    this.#maxNames = maxNames;
  }

  /** How many clients have a name instead of an address. */
  get named(): number {
    return this.#names.size;
  }

  addressOf({ address: text }: LogRequest): string | undefined {
    if (text === undefined) return undefined;
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const address = text.length > longestName ? undefined : ipKey(text, 128) === undefined ? this.#standIn(text) : text;
    if (address !== undefined) {
      if (this.#known.size >= remembered) this.#known = new Map();
      this.#known.set(text, address);
    }
    return address;
  }

  /** The name that an address stands for, or the address itself. Works on keys that hold addresses, too. */
  shown(key: string): string {
    if (this.#names.size === 0) return key;
    return key.replace(/24\d\.\d+\.\d+\.\d+|25[0-5]\.\d+\.\d+\.\d+/g, (address) => this.#byAddress.get(address) ?? address);
  }

  #standIn(name: string): string | undefined {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    const number = this.#names.size;
    if (number >= this.#maxNames) return undefined;
    const address = [240 + (number >>> 24), number >>> 16, number >>> 8, number].map((byte, i) => (i === 0 ? byte : byte & 255)).join(".");
    this.#names.set(name, address);
    this.#byAddress.set(address, name);
    return address;
  }
}
