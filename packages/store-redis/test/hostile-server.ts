import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { decodeReply, ReplyError } from "./resp.js";

/** Replaces the reply to a script run: writes bytes, or does anything else with the connection. */
export type Reply = Buffer | ((socket: Socket) => void);

/** A server that speaks enough of the Redis protocol for client libraries to become ready, and answers scripts with `answer`. */
export class HostileServer {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Answers a script run. */
  answer: (command: readonly string[]) => Reply | Promise<Reply> = () => Buffer.from("-ERR unset\r\n");

  private constructor() {
    this.#server = createServer((socket) => this.#serve(socket));
  }

  static async start(): Promise<HostileServer> {
    const hostile = new HostileServer();
    hostile.#server.listen(0, "127.0.0.1");
    await once(hostile.#server, "listening");
    return hostile;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  stop(): void {
    this.#server.close();
    this.cut();
  }

  /** Closes all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => this.#sockets.delete(socket));
    let bytes: Buffer = Buffer.alloc(0);
    // In order, as Redis replies.
    let done: Promise<void> = Promise.resolve();
    socket.on("data", (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      for (let at = 0; ; ) {
        const command = at < bytes.length ? decodeReply(bytes, at) : undefined;
        if (command === undefined) {
          bytes = bytes.subarray(at);
          return;
        }
        at = command.end;
        done = done.then(() => this.#obey(socket, command.reply as string[]));
      }
    });
  }

  async #obey(socket: Socket, command: readonly string[]): Promise<void> {
    const answer = /^EVAL/i.test(command[0] as string) ? await this.answer(command) : civil(command);
    if (socket.destroyed) return;
    if (typeof answer === "function") answer(socket);
    else socket.write(answer);
  }
}

/** A real server's replies to a connecting client. */
function civil([name = "", word = ""]: readonly string[]): Buffer {
  switch (name.toUpperCase()) {
    case "HELLO": {
      const facts = ["server", "redis", "version", "7.4.0", "proto", Number(word), "id", 1, "mode", "standalone", "role", "master"];
      const head = word === "3" ? `%${(facts.length + 2) / 2}` : `*${facts.length + 2}`;
      return Buffer.concat([Buffer.from(`${head}\r\n`), ...[...facts, "modules", []].map(encodeReply)]);
    }
    case "INFO":
      return encodeReply("# Server\r\nredis_version:7.4.0\r\nloading:0\r\n");
    case "PING":
      return Buffer.from("+PONG\r\n");
    default:
      return Buffer.from("+OK\r\n");
  }
}

/** Encodes a value in the protocol, or in the nearest form that it has. */
export function encodeReply(value: unknown): Buffer {
  if (Array.isArray(value)) return Buffer.concat([Buffer.from(`*${value.length}\r\n`), ...value.map(encodeReply)]);
  if (value instanceof ReplyError) return Buffer.from(`-${value.message}\r\n`);
  if (value === null) return Buffer.from("$-1\r\n");
  if (value === undefined) return Buffer.from("*-1\r\n");
  if (typeof value === "bigint" || Number.isSafeInteger(value)) return Buffer.from(`:${value}\r\n`);
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(String(value));
  return Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from("\r\n")]);
}
