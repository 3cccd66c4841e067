import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  ssr: { resolve: { conditions: ["@floodgate/source"] } },
  resolve: { conditions: ["@floodgate/source"] },
  test: {
    include: ["packages/*/test/**/*.test.ts", "tools/*/test/**/*.test.ts", "test/**/*.test.ts"],
    // More than there are cores: many tests wait for servers.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    // A machine that is busy with other things must not fail a test.
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
