import type { Peer } from "../service/trust.js";
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
