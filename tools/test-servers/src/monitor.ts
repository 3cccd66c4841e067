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
export interface Monitor {
  /** All commands so far, oldest first; those of scripts are marked `lua`. */
  lines(): Promise<readonly string[]>;
  /** Stops monitoring. */
  stop(): void;
}

export async function startMonitor(server: Server): Promise<Monitor> {
  const lines: string[] = [];
  const connection = new Connection(server.port, (line) => lines.push(String(line)));
  await connection.command("MONITOR");
  return {
    async lines() {
      // Lines arrive later than the replies, but in order: when our command's own line is here, so are all earlier ones.
      const mark = randomUUID();
      await server.command("ECHO", mark);
      const isMark = (line: string): boolean => line.includes(mark);
      await until("the monitor hears what was executed", async () => lines.some(isMark));
      lines.splice(lines.findIndex(isMark), 1);
      return [...lines];
    },
    stop: () => connection.close(),
  };
}
