import { parentPort, workerData } from "node:worker_threads";
import type { Work, WorkDone } from "./aside.js";
import { judgeText, readRules } from "./parse.js";
import { mostShown } from "./problems.js";

/** What a thread of its own makes of a text, as plain data. */
function done({ text, source, paths }: Work): WorkDone {
  if (paths !== undefined) {
    const { problemAt } = readRules(text, source);
    return { places: paths.map((path) => problemAt(path, "")) };
  }
  const read = judgeText(text, mostShown);
  return "problems" in read ? read : { rules: read.rules };
}

// Nobody sees the stacks of these mistakes, and to capture thousands takes longer than to find them.
Error.stackTraceLimit = 0;
parentPort?.postMessage(done(workerData));
