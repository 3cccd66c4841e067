import { IncomingMessage } from "node:http";
import { nodeHeader } from "@floodgate/core/adapter";
import type { GatewayRequest } from "../service/request.js";
import type { Peer, Trust } from "../service/trust.js";
import type { Exchange } from "./exchange.js";
import type { Tunnel } from "./tunnel.js";

/** A client's request. */
export class ClientMessage extends IncomingMessage {
  /** Undefined until the request is passed on. */
  exchange?: Exchange;
  /** Undefined unless the request has asked for a WebSocket, and is passed on. */
  tunnel?: Tunnel;
}

/** A client's request, as rules see it. */
export class ProxiedRequest implements GatewayRequest {
  readonly method: string;
  readonly target: string;
  readonly host: string | undefined;
  readonly remoteAddress: string | undefined;
  readonly fromTrustedPeer: boolean;
  readonly #headers: IncomingMessage["headers"];
  readonly #trust: Trust;
  readonly #peer: Peer;
  /** Null until it is asked for. */
  #clientIp: string | undefined | null = null;

  constructor(request: IncomingMessage, peer: Peer, trust: Trust) {
    this.method = request.method as string;
    this.target = request.url as string;
    this.#headers = request.headers;
    this.host = request.headers.host;
    this.remoteAddress = peer.remoteAddress;
    this.fromTrustedPeer = peer.isTrusted;
    this.#peer = peer;
    this.#trust = trust;
  }

  get clientIp(): string | undefined {
    if (this.#clientIp === null) this.#clientIp = this.#trust.clientIp(this.#peer, (name) => this.header(name));
    return this.#clientIp;
  }

  header(lowerCaseName: string): string | undefined {
    return nodeHeader({ headers: this.#headers }, lowerCaseName);
  }
}
