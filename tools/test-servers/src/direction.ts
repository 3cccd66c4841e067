import type { Socket } from "node:net";

/**
 * What happens to bytes in one direction: `pass`; `drop` while the connection stays open; `hold` until the mode changes; `corrupt` by
 * flipping the highest bit of each byte, which breaks the Redis protocol.
 */
export type ProxyMode = "pass" | "drop" | "hold" | "corrupt";

/** One direction of all connections of a proxy. Its settings may be changed at any time. */
export class ProxyDirection {
  /** The delay in milliseconds for bytes that arrive from now on; default 0. Their order does not change. */
  latencyMs = 0;
  readonly #lanes: Set<Lane> = new Set();
  #mode: ProxyMode = "pass";
  #bytes = 0;

  /** Default `pass`. */
  get mode(): ProxyMode {
    return this.#mode;
  }

  set mode(mode: ProxyMode) {
    this.#mode = mode;
    for (const lane of this.#lanes) lane.advance();
  }

  /** The number of bytes that have arrived, in any mode. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @internal Forwards everything from one socket to another, including its end. */
  carry(from: Socket, to: Socket): void {
    const lane = new Lane(this, to);
    this.#lanes.add(lane);
    to.on("close", () => this.#lanes.delete(lane));
    from.on("data", (chunk) => {
      this.#bytes += chunk.length;
      lane.push(chunk);
    });
    from.on("end", () => lane.push("end"));
  }
}

interface Parcel {
  readonly content: Buffer | "end";
  due: boolean;
}

/** One direction of one connection: first in, first out. */
class Lane {
  readonly #direction: ProxyDirection;
  readonly #to: Socket;
  readonly #parcels: Parcel[] = [];

  constructor(direction: ProxyDirection, to: Socket) {
    this.#direction = direction;
    this.#to = to;
  }

  push(content: Buffer | "end"): void {
    const { latencyMs } = this.#direction;
    const parcel = { content, due: latencyMs === 0 };
    this.#parcels.push(parcel);
    if (parcel.due) this.advance();
    else setTimeout(() => this.#fallDue(parcel), latencyMs);
  }

  /** Delivers the bytes that are due. */
  advance(): void {
    while (this.#direction.mode !== "hold" && this.#parcels[0]?.due) this.#deliver((this.#parcels.shift() as Parcel).content);
  }

  #fallDue(parcel: Parcel): void {
    parcel.due = true;
    this.advance();
  }

  #deliver(content: Buffer | "end"): void {
    const { mode } = this.#direction;
    if (!this.#to.writable) return;
    if (content === "end") this.#to.end();
    else if (mode === "corrupt") this.#to.write(content.map((byte) => byte ^ 0x80));
    else if (mode !== "drop") this.#to.write(content);
  }
}
