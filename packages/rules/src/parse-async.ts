import { existsSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { RuleSet } from "@floodgate/core/rules";
import { type InvalidText, type ReadRules, readRules } from "./parse.js";
import { type Path, type Position, RulesError, type RulesProblem } from "./rules-error.js";

/** The task of a worker thread: check a text or, with `paths`, find the positions of these paths in a valid one. */
export interface WorkerTask {
  readonly text: string;
  readonly source: string;
  readonly paths: readonly Path[] | undefined;
}

/** The result of a worker thread. */
export type WorkerResult = { readonly rules: RuleSet } | { readonly positions: readonly Position[] } | InvalidText;

/** Parsed rules, with the positions of their parts. */
export interface ParsedRules {
  readonly rules: RuleSet;
  positionsOf(paths: readonly Path[]): Promise<readonly Position[]>;
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
export async function parseAsync(text: string, source: string, keepsAlive: boolean): Promise<ParsedRules> {
  const inWorker = async (paths?: readonly Path[]): Promise<WorkerResult | undefined> =>
    text.length > maxLengthHere && existsSync(workerFile) ? runInWorker({ text, source, paths }, keepsAlive) : undefined;
  const result = await inWorker();
  if (result !== undefined && "problems" in result) throw new RulesError(source, result.problems, { more: result.more });
  const positionsOf = async (paths: readonly Path[], { problemAt }: ReadRules = readRules(text, source)): Promise<readonly Position[]> =>
    paths.map((path) => problemAt(path, ""));
  if (result === undefined || !("rules" in result)) {
    const read = readRules(text, source);
    return { rules: read.rules, positionsOf: (paths) => positionsOf(paths, read) };
  }
  // Positions are only needed if a middleware refuses valid rules. Then the text is parsed again.
  return {
    rules: result.rules,
    positionsOf: async (paths) => {
      const found = await inWorker(paths);
      return found !== undefined && "positions" in found ? found.positions : positionsOf(paths);
    },
  };
}

/** Resolves with undefined if the thread does not start or ends without a result. */
function runInWorker(task: WorkerTask, keepsAlive: boolean): Promise<WorkerResult | undefined> {
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
