import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Connection } from "./connection.js";
import { type Monitor, startMonitor } from "./monitor.js";
import { loopback } from "./port.js";
import { PrivateServer } from "./private-server.js";
import type { Reply, Word } from "./resp.js";

/** Directives of a server's config file with their values; an array repeats a directive. */
export type RedisConfig = Readonly<Record<string, string | number | readonly string[]>>;

/** A private redis-server (or valkey-server, or sentinel). It comes back empty after a restart. `startRedis` makes one. */
export class RedisServer extends PrivateServer {
  readonly #command: readonly string[];
  #control: Connection | undefined;

  constructor(binary: string, port: number, config: RedisConfig, flags: readonly string[]) {
    super("Redis", port);
    // The program may have another name, but acts as a server only if it is run under a server's name.
    const program = join(this.dir, basename(binary).replace("check-rdb", "server"));
    symlinkSync(binary, program);
    const file = join(this.dir, "server.conf");
    writeFileSync(file, configFile({ port, bind: loopback, dir: this.dir, ...config }));
    this.#command = [program, file, ...flags];
  }

  override async start(): Promise<void> {
    // Remove files that a replication left.
    rmSync(join(this.dir, "dump.rdb"), { force: true });
    await this.run(this.#command, async () => {
      // Make sure that this process is the one that listens on the port.
      const info = await Promise.race([this.info("server"), this.exited]);
      return info?.["process_id"] === String(this.pid);
    });
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
    return startMonitor(this);
  }

  override async stop(): Promise<void> {
    await this.kill();
    this.#control?.close();
    await super.stop();
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
