import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** What the app received. */
export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** How many lines each header had, by its name in lower case. */
  readonly lines: Readonly<Record<string, number>>;
  readonly bytes: number;
  readonly sha256: string;
}

/** An app behind a gateway. It responds with what it received, and to `/status/418` with that status. */
export class App {
  readonly #server: Server;
  #received: Received[] = [];

  constructor() {
    this.#server = createServer(async (req, res) => {
      const hash = createHash("sha256");
      let bytes = 0;
      for await (const chunk of req) {
        hash.update(chunk);
        bytes += chunk.length;
      }
      const { method = "", url = "", headers, headersDistinct } = req;
      const lines = Object.fromEntries(Object.entries(headersDistinct).map(([name, values = []]) => [name, values.length]));
      const received: Received = { method, url, headers, lines, bytes, sha256: hash.digest("hex") };
      this.#received.push(received);
      res.statusCode = Number(/^\/status\/(\d+)/.exec(url)?.[1] ?? 200);
      res.setHeader("X-App", "yes");
      res.end(JSON.stringify(received));
    });
  }

  async start(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** What it received since the last call. */
  take(): Received[] {
    const taken = this.#received;
    this.#received = [];
    return taken;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
