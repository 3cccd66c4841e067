import { parentPort, workerData } from "node:worker_threads";
import { checkText, readRules } from "./parse.js";
import type { WorkerResult, WorkerTask } from "./parse-async.js";
import { maxShown } from "./rules-error.js";

/** Runs the task of this worker thread. The result is plain data, which can be posted. */
function run({ text, source, paths }: WorkerTask): WorkerResult {
  if (paths !== undefined) {
    const { problemAt } = readRules(text, source);
    return { positions: paths.map((path) => problemAt(path, "")) };
  }
  const checked = checkText(text, maxShown);
  return "problems" in checked ? checked : { rules: checked.rules };
}

// The stacks of these errors are never shown, and capturing thousands takes longer than finding the errors.
Error.stackTraceLimit = 0;
parentPort?.postMessage(run(workerData));
