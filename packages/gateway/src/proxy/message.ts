import { type ClientRequest, type IncomingHttpHeaders, IncomingMessage } from "node:http";
import { nodeHeader } from "@floodgate/core/adapter";
import type { GatewayRequest } from "../service/request.js";
import type { Peer, Trust } from "../service/trust.js";
import type { RequestHeaders } from "./request-headers.js";

/** The names and values of a list that has them in turn, as Node's raw headers do. */
export function* pairsOf(raw: readonly string[]): Generator<[name: string, value: string]> {
  for (let i = 0; i < raw.length; i += 2) yield [raw[i] as string, raw[i + 1] as string];
}

/** Hears what becomes of a request at the upstream: an exchange, or a tunnel. */
export interface UpstreamUser {
  onUpstreamRequest(upstreamRequest: ClientRequest): void;
  onUpstreamResponse?(upstreamResponse: IncomingMessage): void;
  onUpstreamTimeout(): void;
  onError(error: Error): void;
}

/** A client's request. */
export class ClientMessage extends IncomingMessage {
  /** Undefined until the request is passed on. */
  user?: UpstreamUser;
  upstreamResponse?: IncomingMessage;
}

/** A client's request as the upstream gets it. Rules see the same, so that no client is counted by a header that does not arrive. */
export class ProxiedRequest implements GatewayRequest {
  readonly method: string;
  readonly target: string;
  readonly host: string | undefined;
  readonly remoteAddress: string | undefined;
  readonly clientIp: string | undefined;
  readonly fromTrustedPeer: boolean;
  readonly headers: IncomingHttpHeaders;
  readonly #message: ClientMessage;

  /** @param upgrade the protocol to upgrade to. */
  constructor(request: ClientMessage, peer: Peer, trust: Trust, headers: RequestHeaders, upgrade?: string) {
    this.#message = request;
    this.method = request.method as string;
    this.target = request.url as string;
    this.host = request.headers.host;
    this.remoteAddress = peer.remoteAddress;
    this.fromTrustedPeer = peer.isTrusted;
    this.clientIp = trust.clientIp(peer, (name) => nodeHeader(request, name));
    this.headers = headers(this, request.headers, upgrade);
  }

  header(lowerCaseName: string): string | undefined {
    return nodeHeader(this, lowerCaseName);
  }

  responseHeader(lowerCaseName: string): string | undefined {
    const { upstreamResponse } = this.#message;
    return upstreamResponse && nodeHeader(upstreamResponse, lowerCaseName);
  }
}
