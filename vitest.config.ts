import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

/** Tests that start servers and processes, which must be stopped even if a test is killed: only a process of their own sees to that. */
const withProcesses = ["store-redis", "rules", "cli", "dashboard", "metrics", "gateway"].map(
  (name) => `packages/${name}/test/**/*.test.ts`,
);

/** Their apps and the browser read one clock, which must not be shifted. */
const inBrowsers = ["dashboard", "simulator"].map((name) => `packages/${name}/test/page/**/*.test.ts`);

/** For `npm run test:long`: faults, soaks, the suites on older versions, the tarballs, and what takes a browser or servers for long. */
const inLongRuns = process.env["FLOODGATE_ALL_RUNS"] === "1" ? [] : ["tools/faults/test/**/*.test.ts", "**/*.long.test.ts"];

/** `npm run test:quick` leaves these out: they take a third of its time. */
const thorough =
  process.env["FLOODGATE_QUICK"] === "1" ? ["hand-over", "eviction-model", "constant-time"].map((name) => `**/${name}.test.ts`) : [];

/** In CI, a test with real servers and processes may run once more, because the machine may stall. The report names it. */
const retry = process.env["CI"] === undefined ? 0 : 1;

/** Each test runs across midnight. */
const setupFiles = [join(import.meta.dirname, "test/edge.ts")];

export default defineConfig({
  ssr: { resolve: { conditions: ["@floodgate/source"] } },
  resolve: { conditions: ["@floodgate/source"] },
  test: {
    // More than there are cores: many tests wait for servers.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    // A machine that is busy with other things must not fail a test.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      // A thread starts faster than a process.
      {
        extends: true,
        test: {
          name: "threads",
          pool: "threads",
          setupFiles,
          include: ["packages/*/test/**/*.test.ts"],
          exclude: [...withProcesses, ...inBrowsers, ...inLongRuns, ...thorough],
        },
      },
      {
        extends: true,
        test: {
          name: "processes",
          pool: "forks",
          retry,
          setupFiles,
          include: [...withProcesses, "tools/*/test/**/*.test.ts", "test/**/*.test.ts"],
          exclude: [...inBrowsers, ...inLongRuns],
        },
      },
      { extends: true, test: { name: "browsers", pool: "forks", retry, include: inBrowsers, exclude: inLongRuns } },
    ],
  },
});
