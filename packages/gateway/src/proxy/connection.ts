import type { Socket } from "node:net";
import type { Peer, Trust } from "../service/trust.js";
import type { Exchange } from "./exchange.js";

/** A client's connection. */
export class Connection {
  readonly peer: Peer;
  /** Whether a request was refused. What comes after it on this connection is not trusted, and not read. */
  isRefused = false;
  /** Requests whose response is not over. More than one if the client pipelines. */
  open = 0;
  /** Requests that wait for their decision or for their turn. */
  pending = 0;
  /** The newest request, if it was passed on. */
  exchange: Exchange | undefined;

  constructor(peer: Peer) {
    this.peer = peer;
  }

  /** Whether it is the client's turn: to send more, or to read more. */
  get waitsForClient(): boolean {
    return this.open === 0 || (this.pending === 0 && this.exchange?.waitsForClient !== false);
  }

  /** The only open request, if it has no answer yet. */
  get unanswered(): Exchange | undefined {
    return this.open === 1 && this.exchange?.hasBegun === false ? this.exchange : undefined;
  }
}

/** The connections of all clients, those of WebSockets included. */
export class Connections {
  readonly #all = new Map<Socket, Connection>();
  readonly #trust: Trust;
  readonly #isUnix: boolean;

  /** @param isUnix whether the server listens on a Unix socket. */
  constructor(trust: Trust, isUnix: boolean) {
    this.#trust = trust;
    this.#isUnix = isUnix;
  }

  add(socket: Socket): void {
    // A connection that was parsed a second time, because it had asked for an upgrade that is ignored.
    if (this.#all.has(socket)) return;
    const peer = this.#trust.peer(socket.remoteAddress, this.#isUnix);
    if (peer === undefined) {
      socket.destroy();
      return;
    }
    this.#all.set(socket, new Connection(peer));
    socket.once("close", () => this.#all.delete(socket));
  }

  of(socket: Socket): Connection | undefined {
    return this.#all.get(socket);
  }

  destroyAll(): void {
    for (const socket of this.#all.keys()) socket.destroy();
  }
}
