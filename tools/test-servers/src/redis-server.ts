import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Connection } from "./connection.js";
import { Monitor } from "./monitor.js";
import { loopback } from "./port.js";
import type { Reply, Word } from "./resp.js";
import { atExit, ServerProcess } from "./server-process.js";
import { until } from "./until.js";

/** Directives of a server's config file with their values; an array repeats a directive. */
export type RedisConfig = Readonly<Record<string, string | number | readonly string[]>>;

/** The server's port was already in use. */
export class PortTakenError extends Error {}

/** A private redis-server (or valkey-server, or sentinel) on 127.0.0.1 with its own folder. `startRedis` makes one. */
export class RedisServer {
  readonly host: string = loopback;
  readonly port: number;
  readonly #dir: string = mkdtempSync(join(tmpdir(), "floodgate-redis-"));
  readonly #program: string;
  readonly #args: readonly string[];
  readonly #forgetExit: () => void;
  #process: ServerProcess | undefined;
  #paused = false;
  #control: Connection | undefined;

  constructor(binary: string, port: number, config: RedisConfig, flags: readonly string[]) {
    this.port = port;
    // The program may have another name, but acts as a server only if it is run under a server's name.
    this.#program = join(this.#dir, basename(binary).replace("check-rdb", "server"));
    symlinkSync(binary, this.#program);
    const file = join(this.#dir, "server.conf");
    writeFileSync(file, configFile({ port, bind: loopback, dir: this.#dir, ...config }));
    this.#args = [file, ...flags];
    this.#forgetExit = atExit(() => this.#remove());
  }

  /** The process id; a restart changes it. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Whether it is running: neither killed nor paused. */
  get running(): boolean {
    return this.#process?.running === true && !this.#paused;
  }

  /**
   * Starts the server, and resolves when it answers.
   * @throws Error with the end of the server's log if it does not start; PortTakenError if its port is in use.
   */
  async start(): Promise<void> {
    // Remove files that a replication left.
    rmSync(join(this.#dir, "dump.rdb"), { force: true });
    const server = new ServerProcess(this.#program, this.#args, this.#log);
    this.#process = server;
    this.#paused = false;
    await until(`the server answers on port ${this.port}`, async () => {
      if (!server.running) return true;
      // Make sure that this process is the one that listens on the port.
      const info = await Promise.race([this.info("server"), server.exited]);
      return info?.["process_id"] === String(server.pid);
    });
    if (!server.running) throw this.#failure();
  }

  /**
   * Sends a command over this object's own connection, which counts as one client: `command("SCRIPT", "FLUSH")`.
   * @throws ReplyError if the server replies with an error, Error if it cannot be reached.
   */
  command(...words: readonly Word[]): Promise<Reply> {
    if (this.#control === undefined || this.#control.closed) this.#control = new Connection(this.port);
    return this.#control.command(...words);
  }

  /** The fields of a section of INFO. */
  async info(section: string): Promise<Record<string, string>> {
    return fieldsOf(await this.command("INFO", section));
  }

  /** Starts to record the commands that the server executes. */
  monitor(): Promise<Monitor> {
    return Monitor.start(this);
  }

  /** Kills the server like a crash (SIGKILL), and resolves when it is gone. `restart` brings it back. */
  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  /** Makes the server hang (SIGSTOP): it stays connected but silent until `resume`. */
  pause(): void {
    this.#paused = true;
    this.#process?.signal("SIGSTOP");
  }

  resume(): void {
    this.#paused = false;
    this.#process?.signal("SIGCONT");
  }

  /** Restarts the server on the same port (killing it first if it runs), and resolves when it answers. It comes back empty. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** Stops the server permanently, and removes its folder. */
  async stop(): Promise<void> {
    await this.kill();
    this.#control?.close();
    this.#forgetExit();
    this.#remove();
  }

  get #log(): string {
    return join(this.#dir, "log");
  }

  #failure(): Error {
    const log = readFileSync(this.#log, "utf8");
    const message = `The server on port ${this.port} ended. Its log ends with:\n${log.trim().split("\n").slice(-10).join("\n")}`;
    return /address already in use/i.test(log) ? new PortTakenError(message) : new Error(message);
  }

  /** Synchronous, for use at exit. */
  #remove(): void {
    this.#process?.signal("SIGKILL");
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

function configFile(config: RedisConfig): string {
  return Object.entries(config)
    .flatMap(([directive, values]) => (Array.isArray(values) ? values : [values]).map((value) => `${directive} ${value}\n`))
    .join("");
}

/** Parses the fields of an INFO or CLUSTER INFO reply. */
export function fieldsOf(reply: Reply): Record<string, string> {
  const fields = String(reply).matchAll(/^([^#:\r\n]+):(.*)\r$/gm);
  return Object.fromEntries(Array.from(fields, ([, name, value]) => [name, value]));
}
