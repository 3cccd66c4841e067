import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { loopback, sparePort } from "./port.js";

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

/** A TCP proxy to a local server that can simulate network faults. `startProxy` makes one. */
export class TcpProxy {
  readonly host: string = loopback;
  readonly port: number;
  /** From clients to the server. */
  readonly requests: ProxyDirection = new ProxyDirection();
  /** From the server to clients. */
  readonly replies: ProxyDirection = new ProxyDirection();
  /** The number of connections accepted so far. */
  accepted = 0;
  readonly #targetPort: number;
  readonly #clients = new Map<Socket, Socket>();
  #server: Server | undefined;

  constructor(targetPort: number, port: number) {
    this.#targetPort = targetPort;
    this.port = port;
  }

  /** The number of open connections. */
  get connections(): number {
    return this.#clients.size;
  }

  /** Accepts connections: the default, and the opposite of `refuse`. */
  async accept(): Promise<void> {
    this.#server ??= createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#connect(client));
    if (this.#server.listening) return;
    this.#server.listen(this.port, loopback);
    await once(this.#server, "listening");
  }

  /** Refuses new connections, like a closed port. Open connections stay open. */
  refuse(): void {
    this.#server?.close();
  }

  /** Resets all connections, on both ends. */
  cut(): void {
    for (const [client, server] of this.#clients) breakOff(client, server);
  }

  /** Loses all that open connections carry from now on, like a firewall that has forgotten them. New connections work. */
  silence(): void {
    for (const sockets of this.#clients) for (const socket of sockets) socket.removeAllListeners("data").resume();
  }

  /** Half-closes all connections towards the clients: they see the end, but can still send. */
  halfClose(): void {
    for (const client of this.#clients.keys()) client.end();
  }

  stop(): void {
    this.refuse();
    this.cut();
  }

  #connect(client: Socket): void {
    const server = connect({ port: this.#targetPort, host: loopback, allowHalfOpen: true, noDelay: true });
    this.accepted++;
    this.#clients.set(client, server);
    client.on("close", () => this.#clients.delete(client));
    for (const socket of [client, server]) socket.on("error", () => breakOff(client, server));
    this.requests.carry(client, server);
    this.replies.carry(server, client);
  }
}

function breakOff(client: Socket, server: Socket): void {
  client.resetAndDestroy();
  server.resetAndDestroy();
}

/** Starts a proxy to a port of 127.0.0.1. If nothing listens there, its connections are reset. */
export async function startProxy(targetPort: number): Promise<TcpProxy> {
  for (;;) {
    const proxy = new TcpProxy(targetPort, await sparePort());
    try {
      await proxy.accept();
      return proxy;
    } catch (error) {
      // Another process took the port first: try the next.
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
}
