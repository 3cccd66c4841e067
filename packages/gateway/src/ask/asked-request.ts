import type { IncomingMessage } from "node:http";
import { nodeHeader } from "@floodgate/core/adapter";
import type { GatewayRequest } from "../service/request.js";
import type { Peer } from "../service/trust.js";
import type { Subject } from "./presets.js";

/** A key's header that a request has twice: the client may have added one to the gateway's. */
export class DuplicateHeader extends Error {}

/** The request that a gateway asks about. Its headers are those that the gateway sends along. */
export class AskedRequest implements GatewayRequest {
  readonly method: string;
  readonly target: string;
  readonly host: string | undefined;
  readonly remoteAddress: string | undefined;
  readonly clientIp: string | undefined;
  readonly fromTrustedPeer = true;
  // Not `#private`: such fields make an object of each request slower to create.
  private readonly message: IncomingMessage;
  private readonly keyHeaders: ReadonlySet<string>;

  /** @param keyHeaders the headers that keys are read from. They must be unique in a request. */
  constructor(
    message: IncomingMessage,
    { method, target, host }: Subject,
    peer: Peer,
    clientIp: string | undefined,
    keyHeaders: ReadonlySet<string>,
  ) {
    this.method = method;
    this.target = target;
    this.host = host;
    this.remoteAddress = peer.remoteAddress;
    this.clientIp = clientIp;
    this.message = message;
    this.keyHeaders = keyHeaders;
  }

  /** @throws DuplicateHeader if a key is read from the header, and it is there twice. */
  header(lowerCaseName: string): string | undefined {
    if (lowerCaseName === "host") return this.host;
    if (this.keyHeaders.has(lowerCaseName) && isTwice(this.message.rawHeaders, lowerCaseName)) throw new DuplicateHeader(lowerCaseName);
    return nodeHeader(this.message, lowerCaseName);
  }
}

function isTwice(rawHeaders: readonly string[], lowerCaseName: string): boolean {
  let found = false;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length !== lowerCaseName.length || name.toLowerCase() !== lowerCaseName) continue;
    if (found) return true;
    found = true;
  }
  return false;
}
