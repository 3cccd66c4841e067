import type { Socket } from "node:net";

/**
 * What becomes of the bytes that go one way: they pass; are dropped, while the connection stays up; are held until the mode
 * changes; or pass with the highest bit of each flipped, which Redis' protocol does not survive.
 */
export type ProxyMode = "pass" | "drop" | "hold" | "corrupt";

/** One way through a proxy, of all its connections. Its switches may be turned at any time. */
export class ProxyDirection {
  /** How many milliseconds after they came the bytes go on that come from now on; default 0. Their order stays. */
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

  /** How many bytes have come, whatever became of them. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @internal Carries what one socket receives, its end included, to another. */
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

/** The way of one connection: first in, first out. */
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

  /** Delivers what is due. */
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
