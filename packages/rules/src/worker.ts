import { parentPort, workerData } from "node:worker_threads";
import type { Work, WorkDone } from "./aside.js";
import { judgeText, readRules } from "./parse.js";
import { mostShown } from "./problems.js";

/** Does the work of the thread, and answers with plain data. */
function done({ text, source, paths }: Work): WorkDone {
  if (paths !== undefined) {
    const { problemAt } = readRules(text, source);
    return { places: paths.map((path) => problemAt(path, "")) };
  }
  const read = judgeText(text, mostShown);
  return "problems" in read ? read : { rules: read.rules };
}

// The stacks of these errors are never shown, and capturing thousands takes longer than finding the errors.
Error.stackTraceLimit = 0;
parentPort?.postMessage(done(workerData));
