import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";

/** Tests that start servers and processes, which must be stopped even if a test is killed: only a process of their own sees to that. */
const withProcesses = ["store-redis", "rules", "cli", "dashboard", "metrics"].map((name) => `packages/${name}/test/**/*.test.ts`);

export default defineConfig({
  ssr: { resolve: { conditions: ["@floodgate/source"] } },
  resolve: { conditions: ["@floodgate/source"] },
  test: {
    // More than there are cores: many tests wait for servers.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    // A machine that is busy with other things must not fail a test.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Each test runs across midnight.
    setupFiles: [join(import.meta.dirname, "test/edge.ts")],
    projects: [
      // A thread starts faster than a process.
      { extends: true, test: { name: "threads", pool: "threads", include: ["packages/*/test/**/*.test.ts"], exclude: withProcesses } },
      {
        extends: true,
        test: { name: "processes", pool: "forks", include: [...withProcesses, "tools/*/test/**/*.test.ts", "test/**/*.test.ts"] },
      },
    ],
  },
});
