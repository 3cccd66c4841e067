import { existsSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { RuleSet } from "@floodgate/core/rules";
import { type ReadRules, type Refused, readRules } from "./parse.js";
import { type Path, type Place, RulesError, type RulesProblem } from "./problems.js";

/** The task of a thread: to judge a text, or with `paths` to find the places of these paths in a valid one. */
export interface Work {
  readonly text: string;
  readonly source: string;
  readonly paths: readonly Path[] | undefined;
}

/** The result of a thread. */
export type WorkDone = { readonly rules: RuleSet } | { readonly places: readonly Place[] } | Refused;

/** Rules that have been read, and how to find the place of each part of them. */
export interface ReadAside {
  readonly rules: RuleSet;
  placesOf(paths: readonly Path[]): Promise<readonly Place[]>;
}

/** Texts up to this many characters are parsed here: that takes as long as starting a thread, some ten milliseconds. */
const mostHere = 16_384;

const tooLarge: RulesProblem = { message: "The text takes more memory than there is to parse it.", line: 1, column: 1, path: [] };

/** Tests run the sources, whose thread runs what has been built of them. An app in one file has no such place. */
const workerFile = typeof __dirname === "undefined" ? "" : join(__dirname, "..", "dist", "worker.js");

/**
 * Reads rules without blocking the event loop: a long text is parsed and judged in a thread of its own. If no thread can start (in an
 * app that is bundled into one file), the text is parsed here.
 * @param keepsAlive whether reading keeps the process alive.
 * @throws RulesError with what is wrong: the first 100 mistakes of a long text.
 */
export async function readAside(text: string, source: string, keepsAlive: boolean): Promise<ReadAside> {
  const inThread = async (paths?: readonly Path[]): Promise<WorkDone | undefined> =>
    text.length > mostHere && existsSync(workerFile) ? workInThread({ text, source, paths }, keepsAlive) : undefined;
  const done = await inThread();
  if (done !== undefined && "problems" in done) throw new RulesError(source, done.problems, { more: done.more });
  const placesOf = async (paths: readonly Path[], { problemAt }: ReadRules = readRules(text, source)): Promise<readonly Place[]> =>
    paths.map((path) => problemAt(path, ""));
  if (done === undefined || !("rules" in done)) {
    const read = readRules(text, source);
    return { rules: read.rules, placesOf: (paths) => placesOf(paths, read) };
  }
  // Places are seldom needed, only if the app refuses valid rules. Then the text is read again.
  return {
    rules: done.rules,
    placesOf: async (paths) => {
      const found = await inThread(paths);
      return found !== undefined && "places" in found ? found.places : placesOf(paths);
    },
  };
}

function workInThread(work: Work, keepsAlive: boolean): Promise<WorkDone | undefined> {
  return new Promise((resolve) => {
    const none = (): void => resolve(undefined);
    try {
      // The app's loaders and flags could make it fail.
      const worker = new Worker(workerFile, { workerData: work, execArgv: [] });
      if (!keepsAlive) worker.unref();
      worker.once("message", resolve);
      worker.once("error", (error: { readonly code?: unknown }) => {
        if (error.code === "ERR_WORKER_OUT_OF_MEMORY") resolve({ problems: [tooLarge], more: 0 });
        else none();
      });
      // A thread that ends without an answer reports nothing else.
      worker.once("exit", none);
    } catch {
      none();
    }
  });
}
