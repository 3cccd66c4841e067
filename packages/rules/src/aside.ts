import { existsSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { RuleSet } from "@floodgate/core";
import { type ReadRules, readRules } from "./parse.js";
import { type Path, RulesError, type RulesProblem } from "./problems.js";

/** What a thread of its own has made of a text. */
export type Parsed = { readonly rules: RuleSet } | { readonly problems: readonly RulesProblem[]; readonly more: number };

/** A text of this many characters takes some ten milliseconds to parse; to start a thread takes as long. */
const mostHere = 16_384;

const tooLarge: RulesProblem = { message: "The text takes more memory than there is to parse it.", line: 1, column: 1, path: [] };

/** Tests run the sources, whose thread runs what has been built of them. An app in one file has no such place. */
const workerFile = typeof __dirname === "undefined" ? "" : join(__dirname, "..", "dist", "worker.js");

/**
 * Reads rules without keeping the event loop: a long text is parsed and judged in a thread of its own. Where no thread can be had (an app
 * that is bundled into one file), it is parsed here.
 * @param keepsAlive whether somebody waits for it who may be all that keeps the process alive.
 * @throws RulesError with what is wrong: the first 1000 mistakes of a long text.
 */
export async function readAside(text: string, source: string, keepsAlive: boolean): Promise<ReadRules> {
  const parsed = text.length > mostHere && existsSync(workerFile) ? await parseInThread(text, source, keepsAlive) : undefined;
  if (parsed === undefined) return readRules(text, source);
  if ("problems" in parsed) throw new RulesError(source, parsed.problems, { more: parsed.more });
  // Places are seldom asked for: only where the app refuses rules that are good in themselves.
  let read: ReadRules | undefined;
  const problemAt = (path: Path, message: string): RulesProblem => {
    read ??= readRules(text, source);
    return read.problemAt(path, message);
  };
  return { rules: parsed.rules, problemAt };
}

function parseInThread(text: string, source: string, keepsAlive: boolean): Promise<Parsed | undefined> {
  return new Promise((resolve) => {
    const none = (): void => resolve(undefined);
    try {
      // The app's loaders and flags are of no use to it, and may fail it.
      const worker = new Worker(workerFile, { workerData: { text, source }, execArgv: [] });
      if (!keepsAlive) worker.unref();
      worker.once("message", resolve);
      worker.once("error", (error: { readonly code?: unknown }) => {
        if (error.code === "ERR_WORKER_OUT_OF_MEMORY") resolve({ problems: [tooLarge], more: 0 });
        else none();
      });
      // Of a thread that was ended without an answer nothing else is heard.
      worker.once("exit", none);
    } catch {
      none();
    }
  });
}
