import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loopback, sparePort } from "./port.js";
import { program } from "./programs.js";
import { atExit, type EndSignal, ServerProcess } from "./server-process.js";
import { until } from "./until.js";

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

/** A private nginx, Caddy, HAProxy or Apache on 127.0.0.1 with its own folder. */
export class WebServer {
  readonly host: string = loopback;
  readonly port: number;
  /** Its folder: config, scripts and logs. */
  readonly dir: string;
  readonly #kind: WebServerKind;
  readonly #process: ServerProcess;
  readonly #forgetExit: () => void;

  constructor(kind: WebServerKind, binary: string, port: number, options: WebServerOptions) {
    this.port = port;
    this.dir = mkdtempSync(join(tmpdir(), `floodgate-${kind.name.toLowerCase()}-`));
    this.#kind = kind;
    this.#forgetExit = atExit(() => this.#remove());
    // Its workers may run as another user.
    chmodSync(this.dir, 0o755);
    const files = { ...options.files, ...kind.files(this, options.config(this)) };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.dir, name), text);
    const { endSignal = "SIGKILL" } = kind;
    this.#process = new ServerProcess(binary, kind.args(this), this.#log, { endSignal, env: kind.env?.(this) ?? {} });
  }

  get url(): string {
    return `http://${this.host}:${this.port}`;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** What it wrote to its log. */
  get log(): string {
    return existsSync(this.#log) ? readFileSync(this.#log, "utf8") : "";
  }

  /**
   * Resolves when it answers.
   * @throws Error with the end of its log if it ended.
   */
  async ready(): Promise<void> {
    const { name } = this.#kind;
    await until(`${name} answers on port ${this.port}`, async () => !this.#process.running || (await this.#kind.ready(this)));
    if (!this.#process.running) throw new Error(`${name} ended. Its log ends with:\n${this.log.trim().split("\n").slice(-10).join("\n")}`);
  }

  /** Stops it permanently, and removes its folder. */
  async stop(): Promise<void> {
    await this.#process.kill();
    this.#forgetExit();
    this.#remove();
  }

  get #log(): string {
    return join(this.dir, "log");
  }

  /** Synchronous, for use at exit. */
  #remove(): void {
    this.#process.end();
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 3 });
  }
}

/**
 * Starts a web server on a spare port, and resolves when it answers. It ends with this process at the latest.
 * @throws Error with its log if it does not start.
 */
export async function startWebServer(kind: WebServerKind, options: WebServerOptions): Promise<WebServer> {
  const binary = program(kind.program);
  for (;;) {
    const server = new WebServer(kind, binary, await sparePort(), options);
    try {
      await server.ready();
      return server;
    } catch (error) {
      // Another process took the free port first: try the next.
      const taken = /address already in use|cannot bind socket/i.test(server.log);
      await server.stop();
      if (!taken) throw error;
    }
  }
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
