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
  /** The number of bytes that have arrived, in any mode. */
  bytes = 0;
  #mode: ProxyMode = "pass";
  /** Deliver what is due on each connection. */
  readonly #deliveries: Set<() => void> = new Set();

  /** Default `pass`. */
  get mode(): ProxyMode {
    return this.#mode;
  }

  set mode(mode: ProxyMode) {
    this.#mode = mode;
    for (const deliver of this.#deliveries) deliver();
  }

  /** @internal Forwards everything from one socket to another, including its end: first in, first out. */
  carry(from: Socket, to: Socket): void {
    const parcels: { readonly content: Buffer | "end"; due: boolean }[] = [];
    const deliver = (): void => {
      while (this.mode !== "hold" && parcels[0]?.due) this.#write(to, (parcels.shift() as { content: Buffer | "end" }).content);
    };
    const push = (content: Buffer | "end"): void => {
      const parcel = { content, due: false };
      parcels.push(parcel);
      const fallDue = (): void => {
        parcel.due = true;
        deliver();
      };
      if (this.latencyMs === 0) fallDue();
      else setTimeout(fallDue, this.latencyMs);
    };
    this.#deliveries.add(deliver);
    to.on("close", () => this.#deliveries.delete(deliver));
    from.on("data", (chunk) => {
      this.bytes += chunk.length;
      push(chunk);
    });
    from.on("end", () => push("end"));
  }

  #write(to: Socket, content: Buffer | "end"): void {
    if (!to.writable) return;
    if (content === "end") to.end();
    else if (this.mode === "corrupt") to.write(content.map((byte) => byte ^ 0x80));
    else if (this.mode !== "drop") to.write(content);
  }
}
