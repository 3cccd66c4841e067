import { afterAll, describe, expect, it } from "vitest";
import { figures, run } from "./faults/run.js";
import { trials } from "./faults/trials.js";

const reports: Record<string, object> = {};
afterAll(() => console.table(reports));

describe.each([
  ["without leases", false],
  ["with leases: processes spend units that they have charged ahead", true],
])("Express, Koa and Hono apps, with ioredis and node-redis, under a steady load, %s", { timeout: 120_000 }, (_, lease) => {
  it.each(trials)(
    "answer every request in time and correctly, and are exact again afterwards: Redis $name",
    async ({ name, fault, onStoreError }) => {
      const report = await run(fault, onStoreError, lease);
      reports[lease ? `${name}, leases` : name] = figures(report);
      expect(report.problems).toEqual([]);
      if (!lease && !fault.brief) expect(report.degraded).toBeGreaterThan(0);
    },
  );
});
