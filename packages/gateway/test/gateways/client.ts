import { type Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { Worker } from "node:worker_threads";

export interface Sent {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Buffer;
  /** Whether the body is sent without a Content-Length. */
  readonly isChunked?: boolean;
  readonly agent?: Agent;
}

export interface Response {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A client with an address of its own. Linux lets all of 127.0.0.0/8 connect. */
export class Client {
  static #count = 0;
  readonly address: string;
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
    Client.#count++;
    this.address = `127.1.${Client.#count >> 8}.${Client.#count & 255}`;
  }

  /** @throws Error if there is no response within 20 seconds. */
  send(path: string, { method = "GET", headers = {}, body, isChunked = false, agent }: Sent = {}): Promise<Response> {
    return new Promise((resolve, reject) => {
      const sent = request(
        { host: "127.0.0.1", port: this.#port, localAddress: this.address, path, method, headers, agent: agent ?? false, timeout: 20_000 },
        (response) => {
          text(response).then((received) => {
            resolve({ status: response.statusCode as number, headers: response.headers, body: received });
          }, reject);
        },
      );
      sent.on("timeout", () => sent.destroy(new Error("There was no response within 20 seconds.")));
      sent.on("error", reject);
      // Without a length, Node sends the body in chunks.
      if (isChunked) sent.flushHeaders();
      sent.end(body);
    });
  }

  /** Sends requests at the same time. Returns how many got each status. */
  async burst(count: number, path: (i: number) => string, sent: (i: number) => Sent = () => ({})): Promise<Record<number, number>> {
    const responses = await Promise.all(Array.from({ length: count }, (_, i) => this.send(path(i), sent(i))));
    const counts: Record<number, number> = {};
    for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  }

  /**
   * Sends requests as they are written, over many connections, in turn until they are `count`. Returns how many got each status; 0 stands for
   * no response.
   */
  attack(requests: readonly string[], count = requests.length, connections = 64): Promise<Record<number, number>> {
    return new Promise((resolve, reject) => {
      const workerData = { port: this.#port, address: this.address, requests, count, connections };
      new Worker(join(__dirname, "attacker.mjs"), { workerData }).on("message", resolve).on("error", reject);
    });
  }

  /** Sends a request as it is written, and closes the connection after so many milliseconds without waiting for the response. */
  async leave(request: string, afterMs: number): Promise<void> {
    const socket = connect({ port: this.#port, host: "127.0.0.1", localAddress: this.address }).on("error", () => undefined);
    await new Promise((resolve) => socket.write(request, resolve));
    await setTimeout(afterMs);
    socket.destroy();
  }
}
