import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { RuleSet } from "@floodgate/core/rules";
import { parseRules } from "@floodgate/rules";
import type { LogSource } from "../src/index.js";

/** A real access log: ours has a hundred lines. Another one may be named in the environment. */
export const accessLog: string = readFileSync(process.env["FLOODGATE_ACCESS_LOG"] ?? join(__dirname, "data", "access-log.txt"), "utf8");

/** A log in memory. */
export function logOf(content: string | Uint8Array | readonly string[], name = "test.log"): LogSource {
  const bytes =
    typeof content === "string" ? Buffer.from(content) : content instanceof Uint8Array ? content : Buffer.from(content.join("\n"));
  return {
    name,
    async *open() {
      // Small pieces, so that lines and characters are cut.
      for (let from = 0; from < bytes.length; from += 1000) yield bytes.subarray(from, from + 1000);
    },
  };
}

export function rules(yaml: string): RuleSet {
  return parseRules(yaml, "limits.yaml");
}

const startMs = Date.UTC(2026, 10, 20, 12, 0, 0);

/** A line of the combined format. */
export function lineAt(ip: string, seconds: number, request = "GET / HTTP/1.1", agent = "curl/8"): string {
  const [, day, month, year, time] = /^\w+, (\d\d) (\w+) (\d+) ([\d:]+)/.exec(
    new Date(startMs + seconds * 1000).toUTCString(),
  ) as RegExpExecArray;
  return `${ip} - - [${day}/${month}/${year}:${time} +0000] "${request}" 200 12 "-" "${agent}"`;
}

/** Random numbers from 0 to 1, always the same ones. */
export function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Many clients, some with bursts; lines are out of order by up to a minute. */
export function randomLog(seed: number, requests: number): string {
  const random = randomNumbers(seed);
  const lines: string[] = [];
  let seconds = 0;
  while (lines.length < requests) {
    seconds += Math.floor(random() * 20);
    const ip = `10.0.0.${Math.floor(random() ** 3 * 40)}`;
    const burst = random() < 0.2 ? Math.floor(random() * 40) : 1;
    for (let i = 0; i < burst; i++) lines.push(lineAt(ip, seconds + Math.floor(random() * 60)));
  }
  return `${lines.join("\n")}\n`;
}
