import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { ProxyDirection } from "./direction.js";
import { loopback, sparePort } from "./port.js";

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
