import type { Trust } from "../service/trust.js";

/** Whether a peer may ask. Everything in a request is believed, so only trusted peers may. */
export class Peers {
  readonly #trust: Trust;
  readonly #isUnix: boolean;
  readonly #hasCertificates: boolean;
  /** The last peer: Envoy keeps its connections. */
  #last = "";
  #trustsLast = false;

  /**
   * @param isUnix whether the server listens on a Unix socket.
   * @param hasCertificates whether TLS has checked the certificate of each peer: then all are trusted.
   */
  constructor(trust: Trust, isUnix: boolean, hasCertificates: boolean) {
    this.#trust = trust;
    this.#isUnix = isUnix;
    this.#hasCertificates = hasCertificates;
  }

  /** @param peer as grpc-js names it: `127.0.0.1:5000`, `::1:5000`; `unknown` for a Unix socket, and for a connection that was reset. */
  trusts(peer: string): boolean {
    if (this.#hasCertificates) return true;
    if (peer !== this.#last) {
      this.#last = peer;
      this.#trustsLast = this.#trust.peer(addressOf(peer), this.#isUnix)?.isTrusted === true;
    }
    return this.#trustsLast;
  }
}

function addressOf(peer: string): string | undefined {
  return /^(.+):\d+$/.exec(peer)?.[1];
}
