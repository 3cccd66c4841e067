import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { sqliteStore } from "../examples/custom-store/sqlite-store.mjs";
import { type StoreGroup, storeConformance } from "../packages/conformance/src/store.js";
import { allRuns } from "./runs.js";

/** What the suites of other stores test, and `npm test` in the example. */
const inLongRuns: readonly StoreGroup[] = [
  ...(["vectors", "algorithms", "large numbers", "accounts", "plans"] as const),
  ...(["refunds", "settle", "keyState", "holds", "slots"] as const),
];

// Opening a file is most of the work of each case, so the random runs are few: `npm test` in the example does all of them.
storeConformance(
  { describe, it },
  {
    name: "the SQLite store of the example",
    makeStore: (clock) => sqliteStore(":memory:", { clock }),
    effort: 0.05,
    leaveOut: Object.fromEntries((allRuns ? [] : inLongRuns).map((group) => [group, "in long runs"])),
  },
);

describe("two processes on one SQLite file", () => {
  it("share one limit, and redeem a receipt once", { timeout: 60_000 }, async () => {
    const demo = join(import.meta.dirname, "../examples/custom-store/demo.mjs");
    const { stdout } = await promisify(execFile)(process.execPath, [demo]);
    expect(stdout).toMatch(/: \d+ and \d+ of them passed, 100 together\.$/m);
    expect(stdout).toContain("-1 units, and again: 0.");
    expect(stdout).toContain("1 is left.");
  });
});
