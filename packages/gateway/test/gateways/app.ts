import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** What the app received. */
export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** The lines of each header, by the name that CGI, WSGI and PHP give it, after a proxy has obeyed `Connection`: `X_API_KEY`. */
  readonly lines: Readonly<Record<string, readonly string[]>>;
  readonly bytes: number;
  readonly sha256: string;
}

/** An app behind a gateway. It responds with what it received, and to `/status/418` with that status. */
export class App {
  readonly #server: Server;
  #received: Received[] = [];

  constructor() {
    this.#server = createServer({ maxHeaderSize: 4_000_000 }, async (req, res) => {
      const hash = createHash("sha256");
      let bytes = 0;
      for await (const chunk of req) {
        hash.update(chunk);
        bytes += chunk.length;
      }
      const { method = "", url = "", headers } = req;
      const received: Received = { method, url, headers, lines: linesOf(req), bytes, sha256: hash.digest("hex") };
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

function linesOf({ rawHeaders, headers }: IncomingMessage): Record<string, string[]> {
  const lines: Record<string, string[]> = {};
  const dropped = (headers.connection ?? "").toLowerCase().split(/[\s,]+/);
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (dropped.includes(name.toLowerCase())) continue;
    const known = name.replace(/[^A-Za-z0-9]/g, "_").toUpperCase();
    lines[known] = [...(lines[known] ?? []), rawHeaders[i + 1] as string];
  }
  return lines;
}
