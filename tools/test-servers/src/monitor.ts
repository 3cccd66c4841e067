import { randomUUID } from "node:crypto";
import { Connection } from "./connection.js";
import type { Reply, Word } from "./resp.js";
import { until } from "./until.js";

/** The server as a monitor needs it. */
interface Server {
  readonly port: number;
  command(...words: readonly Word[]): Promise<Reply>;
}

/** The commands that a server executes, as MONITOR writes them: `1790000000.000000 [0 127.0.0.1:40000] "get" "key"`. */
export class Monitor {
  readonly #server: Server;
  readonly #connection: Connection;
  readonly #lines: string[];

  private constructor(server: Server, connection: Connection, lines: string[]) {
    this.#server = server;
    this.#connection = connection;
    this.#lines = lines;
  }

  static async start(server: Server): Promise<Monitor> {
    const lines: string[] = [];
    const connection = new Connection(server.port, (line) => lines.push(String(line)));
    await connection.command("MONITOR");
    return new Monitor(server, connection, lines);
  }

  /** All commands so far, oldest first; those of scripts are marked `lua`. */
  async lines(): Promise<readonly string[]> {
    // Lines arrive later than the replies, but in order: when our command's own line is here, so are all earlier ones.
    const mark = randomUUID();
    await this.#server.command("ECHO", mark);
    const isMark = (line: string): boolean => line.includes(mark);
    await until("the monitor hears what was executed", async () => this.#lines.some(isMark));
    this.#lines.splice(this.#lines.findIndex(isMark), 1);
    return [...this.#lines];
  }

  /** Stops monitoring. */
  stop(): void {
    this.#connection.close();
  }
}
