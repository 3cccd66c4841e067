import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { ProxyDirection } from "./direction.js";
import { loopback, sparePort } from "./port.js";

/** A TCP proxy between clients and a server of this machine that misbehaves as it is told. `startProxy` makes one. */
export class TcpProxy {
  readonly host: string = loopback;
  readonly port: number;
  /** What clients send. */
  readonly requests: ProxyDirection = new ProxyDirection();
  /** What the server sends. */
  readonly replies: ProxyDirection = new ProxyDirection();
  readonly #targetPort: number;
  readonly #clients = new Map<Socket, Socket>();
  #server: Server | undefined;
  #accepted = 0;

  constructor(targetPort: number, port: number) {
    this.#targetPort = targetPort;
    this.port = port;
  }

  /** How many connections were accepted so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /** How many connections are open now. */
  get connections(): number {
    return this.#clients.size;
  }

  /** Accepts connections, as it does from the start and after `refuse`. */
  async accept(): Promise<void> {
    this.#server ??= createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#connect(client));
    if (this.#server.listening) return;
    this.#server.listen(this.port, loopback);
    await once(this.#server, "listening");
  }

  /** Refuses new connections, as a port does where nobody listens. Those that are open stay so. */
  refuse(): void {
    this.#server?.close();
  }

  /** Cuts all connections at once: both ends see a reset. */
  cut(): void {
    for (const [client, server] of this.#clients) breakOff(client, server);
  }

  /** Ends all connections towards their clients, as a server does that has said its last word but would still listen. */
  halfClose(): void {
    for (const client of this.#clients.keys()) client.end();
  }

  stop(): void {
    this.refuse();
    this.cut();
  }

  #connect(client: Socket): void {
    const server = connect({ port: this.#targetPort, host: loopback, allowHalfOpen: true, noDelay: true });
    this.#accepted++;
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

/** Starts a proxy before a port of 127.0.0.1. Where nobody listens there, its connections are reset. */
export async function startProxy(targetPort: number): Promise<TcpProxy> {
  for (;;) {
    const proxy = new TcpProxy(targetPort, await sparePort());
    try {
      await proxy.accept();
      return proxy;
    } catch (error) {
      // Somebody else was quicker to take the port: the next is tried.
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
}
