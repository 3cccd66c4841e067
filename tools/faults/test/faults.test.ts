import { afterAll, describe, expect, it } from "vitest";
import { trials } from "../src/faults/faults.js";
import { type Report, run, table } from "../src/faults/run.js";

/** One fault of each family. `npm run test:long` runs all. */
const sample = [
  "killed",
  "stopped (SIGSTOP)",
  "slow: 300 ms",
  "replies lost",
  "replies corrupted",
  "Cluster: a master killed",
  'killed, "fallback"',
];
const tried = trials.filter(({ name }) => sample.includes(name));

const reports = new Map<string, Report>();
afterAll(() => console.log(`\n${table(reports)}\n`));

describe("Express, Koa and Hono apps, with ioredis and node-redis, under a steady load", { timeout: 120_000 }, () => {
  it.each(tried)(
    "answer every request in time and correctly, and are exact again afterwards: Redis $name",
    async ({ name, fault, onStoreError }) => {
      const report = await run(fault, onStoreError);
      reports.set(name, report);
      expect(report.problems).toEqual([]);
      if (!fault.brief) expect(report.degraded).toBeGreaterThan(0);
    },
  );
});
