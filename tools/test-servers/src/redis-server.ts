import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { atExit } from "./at-exit.js";
import { Connection } from "./connection.js";
import { Monitor } from "./monitor.js";
import { loopback } from "./port.js";
import type { Reply, Word } from "./resp.js";
import { ServerProcess } from "./server-process.js";
import { until } from "./until.js";

/** Directives of a server's config file with their values; an array for one that stands there several times. */
export type RedisConfig = Readonly<Record<string, string | number | readonly string[]>>;

/** A server's port was taken before it could listen. */
export class PortTakenError extends Error {}

/** A redis-server (or valkey-server, or a sentinel) of its own, on 127.0.0.1, in a folder of its own. `startRedis` makes one. */
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
    // The program may have another name, and takes itself for a server only where it is run by a server's name.
    this.#program = join(this.#dir, basename(binary).replace("check-rdb", "server"));
    symlinkSync(binary, this.#program);
    const file = join(this.#dir, "server.conf");
    writeFileSync(file, configFile({ port, bind: loopback, dir: this.#dir, ...config }));
    this.#args = [file, ...flags];
    this.#forgetExit = atExit(() => this.#remove());
  }

  /** The process's id; another one after a restart. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Whether it can answer: it was neither killed nor paused. */
  get running(): boolean {
    return this.#process?.running === true && !this.#paused;
  }

  /**
   * Starts the server, and resolves when it answers.
   * @throws Error, with the end of the server's log, where it does not; PortTakenError where somebody else has its port.
   */
  async start(): Promise<void> {
    // What a replication left there.
    rmSync(join(this.#dir, "dump.rdb"), { force: true });
    const server = new ServerProcess(this.#program, this.#args, this.#log);
    this.#process = server;
    this.#paused = false;
    await until(`the server answers on port ${this.port}`, async () => {
      if (!server.running) return true;
      // Whatever listens on this port must be this very process.
      const info = await Promise.race([this.info("server"), server.exited]);
      return info?.["process_id"] === String(server.pid);
    });
    if (!server.running) throw this.#failure();
  }

  /**
   * Sends a command by a connection of the server's own, which counts as one client: `command("SCRIPT", "FLUSH")`.
   * @throws ReplyError where the server answers one, Error where it cannot be reached.
   */
  command(...words: readonly Word[]): Promise<Reply> {
    if (this.#control === undefined || this.#control.closed) this.#control = new Connection(this.port);
    return this.#control.command(...words);
  }

  /** The fields of a section of INFO. */
  async info(section: string): Promise<Record<string, string>> {
    return fieldsOf(await this.command("INFO", section));
  }

  /** Starts to note the commands that the server executes. */
  monitor(): Promise<Monitor> {
    return Monitor.start(this);
  }

  /** Kills the server as a crash would (SIGKILL), and resolves when it is gone. `restart` brings it back. */
  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  /** Has the server hang (SIGSTOP): it stays connected, and silent until `resume`. */
  pause(): void {
    this.#paused = true;
    this.#process?.signal("SIGSTOP");
  }

  resume(): void {
    this.#paused = false;
    this.#process?.signal("SIGCONT");
  }

  /** Starts the server again on the same port, killing it first where it runs, and resolves when it answers. It comes back empty. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** Ends the server for good, and removes what it left. */
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

  /** At exit, too, where nothing can be waited for. */
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

/** The fields of an answer to INFO, or to CLUSTER INFO. */
export function fieldsOf(reply: Reply): Record<string, string> {
  const fields = String(reply).matchAll(/^([^#:\r\n]+):(.*)\r$/gm);
  return Object.fromEntries(Array.from(fields, ([, name, value]) => [name, value]));
}
