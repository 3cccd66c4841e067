import assert from "node:assert/strict";
import { once } from "node:events";
import type { Server } from "node:http";
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from "node:http2";
import { type AddressInfo, connect, type Socket } from "node:net";
import { self, turn, turns } from "./world.js";

/** A request to send. */
export interface Asked {
  /** Default: POST with a body, else GET. */
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A connection with several open requests. */
export interface Client {
  /** The server's socket. */
  readonly accepted: Socket;
  /** The statuses of the responses that have begun to arrive, in order. */
  readonly statuses: readonly number[];
  /** Sends requests without waiting for responses. */
  ask(...requests: Asked[]): void;
  /** Closes the connection. Settles when the server has noticed. */
  leave(): Promise<void>;
}

/** HTTP/1.1 with pipelining. */
export class PipeliningClient implements Client {
  readonly statuses: number[] = [];
  readonly accepted: Socket;
  readonly socket: Socket;

  private constructor(socket: Socket, accepted: Socket) {
    this.socket = socket;
    this.accepted = accepted;
  }

  static async connect(server: Server, reads = true): Promise<PipeliningClient> {
    const accepting = once(server, "connection");
    const socket = connect((server.address() as AddressInfo).port, self).on("error", () => undefined);
    const client = new PipeliningClient(socket, (await accepting)[0]);
    let tail = "";
    if (reads) {
      socket.on("data", (data) => {
        const text = tail + data.toString("latin1");
        for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) client.statuses.push(Number(status));
        // Shorter than a status line, so no status is counted twice.
        tail = text.slice(-12);
      });
    }
    return client;
  }

  ask(...requests: Asked[]): void {
    this.socket.write(requests.map(message).join(""));
  }

  /** Sends requests, ends its side of the connection, and keeps reading. */
  askLast(...requests: Asked[]): void {
    this.socket.end(requests.map(message).join(""));
  }

  /** Sends a request and resets the connection, so that its socket has lost the address when Node reads the request. */
  async askAndReset(request: Asked): Promise<void> {
    this.socket.write(message(request), () => this.socket.resetAndDestroy());
    await gone(this.accepted);
  }

  async leave(): Promise<void> {
    this.socket.destroy();
    await gone(this.accepted);
  }

  /** Settles when `count` responses have arrived. */
  async answers(count: number): Promise<readonly number[]> {
    await until(() => this.statuses.length >= count, `${count} answers`);
    return this.statuses;
  }
}

function message({ body, method = body === undefined ? "GET" : "POST", path = "/", headers = {} }: Asked): string {
  const lines = Object.entries({ host: "localhost", ...headers, ...(body === undefined ? {} : { "content-length": `${body.length}` }) });
  return `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body ?? ""}`;
}

/** HTTP/2; each request is a stream. */
export class Http2Client implements Client {
  readonly statuses: number[] = [];
  readonly accepted: Socket;
  readonly streams: ClientHttp2Stream[] = [];
  readonly #session: ClientHttp2Session;
  readonly #socket: Socket;
  readonly #reads: boolean;

  private constructor(session: ClientHttp2Session, socket: Socket, accepted: Socket, reads: boolean) {
    this.#session = session;
    this.#socket = socket;
    this.accepted = accepted;
    this.#reads = reads;
  }

  static async connect(server: Server, reads = true): Promise<Http2Client> {
    const accepting = once(server, "connection");
    const socket = connect((server.address() as AddressInfo).port, self);
    const session = connectHttp2(`http://${self}`, { createConnection: () => socket }).on("error", () => undefined);
    return new Http2Client(session, socket, (await accepting)[0], reads);
  }

  ask(...requests: Asked[]): void {
    for (const { body, method = body === undefined ? "GET" : "POST", path = "/", headers = {} } of requests) {
      const length = body === undefined ? {} : { "content-length": body.length };
      const sent = { ":path": path, ":method": method, ...headers, ...length };
      const stream = this.#session.request(sent, { endStream: body === undefined });
      if (body !== undefined) stream.end(body);
      stream.on("error", () => undefined);
      stream.on("response", (answered) => this.statuses.push(Number(answered[":status"])));
      if (this.#reads) stream.resume();
      this.streams.push(stream);
    }
  }

  /** Cancels one request. Settles when the server has noticed. */
  async cancel(index: number, code: number = constants.NGHTTP2_CANCEL): Promise<void> {
    this.streams[index]?.close(code);
    await new Promise((resolve) => this.#session.ping(resolve));
    // The event reaches the requests a little later.
    await turns(3);
  }

  async leave(): Promise<void> {
    // `session.destroy` might end the session gracefully and wait for the server.
    this.#socket.destroy();
    await gone(this.accepted);
  }
}

async function gone(accepted: Socket): Promise<void> {
  // `once` of node:events would throw on the reset that is expected here.
  if (!accepted.closed) await new Promise((resolve) => accepted.once("close", resolve));
  // The event reaches the requests a little later.
  await turns(3);
}

/** Waits for a condition; fails if it does not come true. */
export async function until(holds: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 10_000;
  while (!holds()) {
    if (performance.now() > end) assert.fail(`waited in vain for ${what}`);
    await turn();
  }
}
