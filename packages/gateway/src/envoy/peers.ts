import type { Trust } from "../service/trust.js";

/** Whether a peer may ask. Everything in a request is believed, so only trusted peers may. */
export class Peers {
  readonly #trust: Trust;
  readonly #hasCertificates: boolean;
  /** The last peer: Envoy keeps its connections. */
  #last = "";
  #trustsLast = false;

  /** @param hasCertificates whether TLS has checked the certificate of each peer: then all are trusted. */
  constructor(trust: Trust, hasCertificates: boolean) {
    this.#trust = trust;
    this.#hasCertificates = hasCertificates;
  }

  /** @param peer as grpc-js names it: `127.0.0.1:5000`, `[::1]:5000`, or anything else for a Unix socket. */
  trusts(peer: string): boolean {
    if (this.#hasCertificates) return true;
    if (peer !== this.#last) {
      this.#last = peer;
      this.#trustsLast = this.#trust.trusts(addressOf(peer));
    }
    return this.#trustsLast;
  }
}

function addressOf(peer: string): string | undefined {
  const [, bracketed, plain] = /^(?:\[(.+)\]|(.+)):\d+$/.exec(peer) ?? [];
  return bracketed ?? plain;
}
