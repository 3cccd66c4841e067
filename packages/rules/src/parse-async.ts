import { existsSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { RuleSet } from "@floodgate/core/rules";
import { type InvalidText, readRules } from "./parse.js";
import { type Path, type Position, RulesError, type RulesProblem } from "./rules-error.js";

/** The task of a worker thread: check a text, and find the positions of these paths in it if it is valid. */
export interface WorkerTask {
  readonly text: string;
  readonly paths: readonly Path[];
}

/** Valid rules, and the positions of the paths that were asked for. */
export interface ParsedRules {
  readonly rules: RuleSet;
  readonly positions: readonly Position[];
}

/** Texts up to this many characters are parsed here. That takes about as long as starting a thread (10 ms). */
const maxLengthHere = 16_384;

const outOfMemory: RulesProblem = { message: "Parsing this text needs more memory than is available.", line: 1, column: 1, path: [] };

/** Tests run the sources, but a thread needs the built file. An app bundled into one file has neither. */
const workerFile = typeof __dirname === "undefined" ? "" : join(__dirname, "..", "dist", "parse-worker.js");

/**
 * Parses rules without blocking the event loop: a long text is parsed and checked in a worker thread. If no thread can start (in an
 * app that is bundled into one file), the text is parsed here.
 * @param keepsAlive whether parsing keeps the process alive.
 * @throws RulesError with the problems: the first 100 for a long text.
 */
export async function parseAsync(text: string, source: string, keepsAlive: boolean, paths: readonly Path[] = []): Promise<ParsedRules> {
  const result = text.length > maxLengthHere && existsSync(workerFile) ? await runInWorker({ text, paths }, keepsAlive) : undefined;
  if (result === undefined) {
    const { rules, problemAt } = readRules(text, source);
    return { rules, positions: paths.map((path) => problemAt(path, "")) };
  }
  if ("problems" in result) throw new RulesError(source, result.problems, { more: result.more });
  return result;
}

/** Resolves with undefined if the thread does not start or ends without a result. */
function runInWorker(task: WorkerTask, keepsAlive: boolean): Promise<ParsedRules | InvalidText | undefined> {
  return new Promise((resolve) => {
    const noResult = (): void => resolve(undefined);
    try {
      // Without the app's loaders and flags, which could make the thread fail.
      const worker = new Worker(workerFile, { workerData: task, execArgv: [] });
      if (!keepsAlive) worker.unref();
      worker.once("message", resolve);
      worker.once("error", (error: { readonly code?: unknown }) => {
        if (error.code === "ERR_WORKER_OUT_OF_MEMORY") resolve({ problems: [outOfMemory], more: 0 });
        else noResult();
      });
      // After a message or an error this does nothing.
      worker.once("exit", noResult);
    } catch {
      noResult();
    }
  });
}
