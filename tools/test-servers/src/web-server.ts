import { chmodSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { type EndSignal, PrivateServer, started } from "./private-server.js";
import { program } from "./programs.js";

/** Where a web server runs. */
export interface WebServerPlace {
  /** A free port of 127.0.0.1. */
  readonly port: number;
  /** The server's own folder, which its workers can read. */
  readonly dir: string;
}

export interface WebServerOptions {
  /** Writes the config: ``({ port }) => `server { listen 127.0.0.1:${port}; }` ``. It is called again if the port was taken. */
  config: (place: WebServerPlace) => string;
  /** More files for the server's folder, such as scripts: name to text. */
  files?: Readonly<Record<string, string>>;
}

/** What one kind of web server needs to run in the foreground and in its own folder. */
export interface WebServerKind {
  readonly name: string;
  readonly program: Parameters<typeof program>[0];
  /** Command-line arguments. The config files are already in the folder. */
  args(place: WebServerPlace): string[];
  /** The files that make up the config: name to text. */
  files(place: WebServerPlace, config: string): Record<string, string>;
  readonly env?: (place: WebServerPlace) => Record<string, string>;
  /** Whether this process, and no other one on the port, answers. */
  ready(place: WebServerPlace): Promise<boolean>;
  readonly endSignal?: EndSignal;
}

/** A private nginx, Caddy, HAProxy or Apache. */
export class WebServer extends PrivateServer {
  readonly #kind: WebServerKind;

  constructor(kind: WebServerKind, port: number, options: WebServerOptions) {
    super(kind.name, port, kind.endSignal);
    this.#kind = kind;
    // Its workers may run as another user.
    chmodSync(this.dir, 0o755);
    const files = { ...options.files, ...kind.files(this, options.config(this)) };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.dir, name), text);
  }

  get url(): string {
    return `http://${this.host}:${this.port}`;
  }

  override start(): Promise<void> {
    const { program: name, args, ready, env } = this.#kind;
    return this.run([program(name), ...args(this)], () => ready(this), env?.(this));
  }
}

/**
 * Starts a web server on a spare port, and resolves when it answers. It ends with this process at the latest.
 * @throws Error with its log if it does not start.
 */
export function startWebServer(kind: WebServerKind, options: WebServerOptions): Promise<WebServer> {
  return started((port) => new WebServer(kind, port, options));
}

/** The body of a 200 answer on a Unix socket; undefined for another status. */
export function askSocket(socketPath: string, path = "/"): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path, agent: false }, (res) => {
      const chunks: Buffer[] = [];
      res.on("data", (chunk: Buffer) => chunks.push(chunk));
      res.on("end", () => resolve(res.statusCode === 200 ? Buffer.concat(chunks).toString() : undefined));
    });
    asked.on("error", reject).end();
  });
}
