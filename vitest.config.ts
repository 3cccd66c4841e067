import { defineConfig } from "vitest/config";

export default defineConfig({
  ssr: { resolve: { conditions: ["@floodgate/source"] } },
  resolve: { conditions: ["@floodgate/source"] },
  test: { include: ["packages/*/test/**/*.test.ts", "tools/*/test/**/*.test.ts", "test/**/*.test.ts"] },
});
