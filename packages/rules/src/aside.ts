import { existsSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { RuleSet } from "@floodgate/core";
import { type ReadRules, type Refused, readRules } from "./parse.js";
import { type Path, type Place, RulesError, type RulesProblem } from "./problems.js";

/** What a thread of its own is to do: to judge a text, or to find where some paths of a good one lead to. */
export interface Work {
  readonly text: string;
  readonly source: string;
  readonly paths: readonly Path[] | undefined;
}

/** What such a thread has made of a text. */
export type WorkDone = { readonly rules: RuleSet } | { readonly places: readonly Place[] } | Refused;

/** Rules that have been read, and how to find the place of each part of them. */
export interface ReadAside {
  readonly rules: RuleSet;
  placesOf(paths: readonly Path[]): Promise<readonly Place[]>;
}

/** A text of this many characters takes some ten milliseconds to parse; to start a thread takes as long. */
const mostHere = 16_384;

const tooLarge: RulesProblem = { message: "The text takes more memory than there is to parse it.", line: 1, column: 1, path: [] };

/** Tests run the sources, whose thread runs what has been built of them. An app in one file has no such place. */
const workerFile = typeof __dirname === "undefined" ? "" : join(__dirname, "..", "dist", "worker.js");

/**
 * Reads rules without keeping the event loop: a long text is parsed and judged in a thread of its own. Where no thread can be had (an app
 * that is bundled into one file), it is parsed here.
 * @param keepsAlive whether somebody waits for it who may be all that keeps the process alive.
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
  // Places are seldom asked for, only where the app refuses rules that are good in themselves: the text is read again for them.
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
      // The app's loaders and flags are of no use to it, and may fail it.
      const worker = new Worker(workerFile, { workerData: work, execArgv: [] });
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
