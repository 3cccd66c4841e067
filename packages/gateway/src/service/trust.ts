import { singleAddress, TrustedProxies } from "@floodgate/core/adapter";
import type { Settings } from "../config/settings.js";

type HeaderReader = (lowerCaseName: string) => string | undefined;

/** The other end of a connection. */
export interface Peer {
  /** Undefined for a Unix socket. */
  readonly remoteAddress: string | undefined;
  /** Whether it is one of `trustedPeers`. */
  readonly isTrusted: boolean;
}

/** Which peers are believed, and what they say about the client's address. */
export class Trust {
  readonly #proxies: TrustedProxies;
  readonly #unix: boolean;
  readonly #header: string;

  /** @throws FloodgateError if an entry is no address, range or word, or if the ranges trust everyone. */
  constructor({ trustedPeers, clientIpHeader }: Pick<Settings, "trustedPeers" | "clientIpHeader">) {
    const ranges = trustedPeers.filter((peer) => peer !== "unix");
    this.#unix = ranges.length < trustedPeers.length;
    this.#proxies = new TrustedProxies("`trustedPeers", ranges);
    this.#header = clientIpHeader.toLowerCase();
  }

  /**
   * The peer of a connection. Call it once, when the connection begins: a client that has reset its connection has no address any more, and
   * would look like the peer of a Unix socket.
   * @param isUnix whether the server listens on a Unix socket.
   * @returns undefined if the peer has left before its address could be read. Close the connection.
   */
  peer(remoteAddress: string | undefined, isUnix: boolean): Peer | undefined {
    if (isUnix) return { remoteAddress: undefined, isTrusted: this.#unix };
    return remoteAddress === undefined ? undefined : { remoteAddress, isTrusted: this.#proxies.has(remoteAddress) };
  }

  /**
   * The client's address: what a trusted peer says in the header of `clientIpHeader`, counted from the right past trusted peers; else the
   * peer's own.
   * @param name another header, for a peer that has its own.
   */
  clientIp({ remoteAddress, isTrusted }: Peer, header: HeaderReader, name: string = this.#header): string | undefined {
    if (!isTrusted) return remoteAddress;
    const value = header(name);
    return (value === undefined ? undefined : this.#addressIn(name, value)) ?? remoteAddress;
  }

  #addressIn(name: string, value: string): string | undefined {
    if (name === "x-forwarded-for") return this.#proxies.clientOf(value);
    if (name === "forwarded") return this.#proxies.clientOf(forwardedList(value));
    // Two addresses mean that somebody else set the header too, so neither counts.
    return singleAddress(value);
  }
}

/**
 * The addresses in a `Forwarded` header (RFC 7239), as a list like `X-Forwarded-For`. An element without an address (`for=unknown`,
 * `for=_hidden`, a syntax error) stays in the list as a text that is no address. So no address further left is believed.
 */
function forwardedList(value: string): string {
  return parts(value, ",").map(forAddress).join(",");
}

/** Splits at a separator outside of quotes. After a quote that never closes, all is one part. */
function parts(value: string, separator: "," | ";"): string[] {
  // No header contains a NUL.
  return value.replace(/"(?:\\.|[^"\\])*"?|[,;]/gs, (token) => (token === separator ? "\0" : token)).split("\0");
}

const invalid = "unknown";

/**
 * One invalid pair makes the whole element invalid. A client may leave a quote open. Then the quotes that a proxy appends close and open in the
 * wrong places, and a host that the client chose would stand outside of quotes.
 */
function forAddress(element: string): string {
  let address: string | undefined;
  for (const text of parts(element, ";")) {
    const pair = text.trim();
    if (pair === "") continue;
    const [, name, plain, quoted = ""] = /^([^\s"\\;,=]+)=(?:([^\s"\\;,]+)|"((?:\\.|[^"\\])*)")$/s.exec(pair) ?? [];
    if (name === undefined) return invalid;
    if (name.toLowerCase() !== "for") continue;
    // Twice in one element is an error.
    if (address !== undefined || quoted.includes(",")) return invalid;
    address = plain ?? quoted;
  }
  return address || invalid;
}
