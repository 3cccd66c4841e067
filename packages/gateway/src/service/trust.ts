import { singleAddress, TrustedProxies } from "@floodgate/core/adapter";
import type { Settings } from "../config/settings.js";
import { forwardedList } from "./forwarded.js";

type HeaderReader = (lowerCaseName: string) => string | undefined;

/** Which peers are believed, and what they say about the client's address. */
export class Trust {
  readonly #proxies: TrustedProxies | undefined;
  readonly #unix: boolean;
  readonly #header: string;

  /** @throws FloodgateError if an entry is no address, range or word, or if the ranges trust everyone. */
  constructor({ trustedPeers, clientIpHeader }: Pick<Settings, "trustedPeers" | "clientIpHeader">) {
    const ranges = trustedPeers.filter((peer) => peer !== "unix");
    this.#unix = ranges.length < trustedPeers.length;
    this.#proxies = ranges.length === 0 ? undefined : new TrustedProxies("`trustedPeers", ranges);
    this.#header = clientIpHeader.toLowerCase();
  }

  /** Whether a peer is trusted. A peer without an address is on a Unix socket. */
  trusts(remoteAddress: string | undefined): boolean {
    return remoteAddress === undefined ? this.#unix : this.#proxies?.has(remoteAddress) === true;
  }

  /**
   * The client's address: what a trusted peer says in the header of `clientIpHeader`, counted from the right past trusted peers; else the
   * peer's own.
   * @param name another header, for a peer that has its own.
   */
  clientIp(remoteAddress: string | undefined, header: HeaderReader, name: string = this.#header): string | undefined {
    if (!this.trusts(remoteAddress)) return remoteAddress;
    const value = header(name);
    return (value === undefined ? undefined : this.#addressIn(name, value)) ?? remoteAddress;
  }

  #addressIn(name: string, value: string): string | undefined {
    if (name === "x-forwarded-for") return this.#clientOf(value);
    if (name === "forwarded") return this.#clientOf(forwardedList(value));
    // Two addresses mean that somebody else set the header too, so neither counts.
    return singleAddress(value);
  }

  #clientOf(list: string): string | undefined {
    return (this.#proxies ?? nobody).clientOf(list);
  }
}

/** If only Unix sockets are trusted, the last address of a list is the client's. */
const nobody: TrustedProxies = new TrustedProxies("`trustedPeers", []);
