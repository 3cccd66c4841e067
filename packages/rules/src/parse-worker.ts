import { parentPort, workerData } from "node:worker_threads";
import { checkText } from "./parse.js";
import type { ParsedRules, WorkerTask } from "./parse-async.js";
import { maxShown } from "./rules-error.js";

// The stacks of these errors are never shown, and capturing thousands takes longer than finding the errors.
Error.stackTraceLimit = 0;

const { text, paths } = workerData as WorkerTask;
const checked = checkText(text, maxShown);
// Plain data, which can be posted.
const result =
  "problems" in checked
    ? checked
    : ({ rules: checked.rules, positions: paths.map((path) => checked.problemAt(path, "")) } satisfies ParsedRules);
parentPort?.postMessage(result);
