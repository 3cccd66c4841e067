import { describe, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { type StoreGroup, storeConformance } from "../../conformance/src/store.js";
import { type DatabaseDriver, databaseStore } from "../src/index.js";
import { compareWithMemory } from "./compare-with-memory.js";

let prefixes = 0;

/** What every driver shares with the one in memory, which `conformance.test.ts` judges by all groups. */
const inLongRuns: readonly StoreGroup[] = [
  ...(["vectors", "algorithms", "large numbers", "accounts", "plans"] as const),
  ...(["refunds", "settle", "keyState", "holds"] as const),
];

/** Runs the suite of stores on a driver: all of it in long runs, else the groups in which drivers can differ. */
export function suiteOf(name: string, driver: () => DatabaseDriver): void {
  const leaveOut = Object.fromEntries((allRuns ? [] : inLongRuns).map((group) => [group, "in long runs"]));
  storeConformance(
    { describe, it },
    {
      name,
      makeStore: (clock) => databaseStore(driver(), { clock, denyCache: false, prefix: `run-${prefixes++}` }),
      effort: allRuns ? 0.2 : 0.01,
      leaveOut,
    },
  );
  it.runIf(allRuns)(`${name} decides, settles, blocks and shows everything as a memory store does`, { timeout: 120_000 }, () =>
    compareWithMemory(driver, 60),
  );
}
