import { parentPort, workerData } from "node:worker_threads";
import type { Parsed } from "./aside.js";
import { readRules } from "./parse.js";
import { RulesError } from "./problems.js";

/** What a thread of its own makes of a text, as plain data. */
function parsed({ text, source }: { text: string; source: string }): Parsed {
  try {
    return { rules: readRules(text, source).rules };
  } catch (error) {
    if (!(error instanceof RulesError)) throw error;
    return { problems: error.problems.slice(0, 1000), more: Math.max(error.problems.length - 1000, 0) };
  }
}

parentPort?.postMessage(parsed(workerData));
