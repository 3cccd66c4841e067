import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type Running, type Settings, serve } from "../src/index.js";

/** Runs something at the end. */
export type AtEnd = (task: () => void | Promise<void>) => void;

/** A folder for one test. */
export function temporaryFolder(atEnd: AtEnd = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), "floodgate-"));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Collects log lines, as objects. */
export class Log {
  readonly lines: Record<string, unknown>[] = [];

  write(line: string): void {
    this.lines.push(JSON.parse(line) as Record<string, unknown>);
  }

  /** The messages of warnings and errors. */
  get warnings(): string[] {
    const isBad = (level: unknown): boolean => level === "warn" || level === "error" || Number(level) >= 40;
    return this.lines.filter(({ level }) => isBad(level)).map(({ message }) => String(message));
  }

  get messages(): string[] {
    return this.lines.map(({ message }) => String(message));
  }
}

export interface World {
  readonly running: Running;
  readonly log: Log;
  readonly rulesFile: string;
  /** `http://127.0.0.1:<port>` of the decision server. */
  readonly ask: string;
  /** The same for the JSON API. */
  readonly api: string;
}

/**
 * Starts a decision server on free ports, with rules as JSON.
 * @param atEnd ends it. Default: with the test.
 */
export async function startServe(
  rules: readonly object[],
  settings: Partial<Settings> = {},
  atEnd: AtEnd = onTestFinished,
): Promise<World> {
  const rulesFile = join(temporaryFolder(atEnd), "limits.json");
  writeFileSync(rulesFile, JSON.stringify({ rules }));
  const log = new Log();
  const common = { rules: rulesFile, listen: "127.0.0.1:0", admin: false, drainMs: 0, closeMs: 100, logFormat: "json" } as const;
  const running = await serve({ ...common, ...settings }, { log });
  atEnd(() => running.close());
  const { listen = "", apiListen = "" } = running.addresses;
  return { running, log, rulesFile, ask: `http://${listen}`, api: `http://${apiListen}` };
}

/** A rule that allows a few requests of each key in a window that no test outlasts. */
export function few(limit: number, more: object = {}): object {
  return { name: "few", limit, window: "365d", ...more };
}
