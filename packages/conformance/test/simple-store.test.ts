import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { storeConformance } from "../src/store.js";
import { simpleStore } from "./simple-store.js";

// The suite judges the store that the documentation shows, so that the page cannot rot and the suite is not the memory store's alone.
storeConformance(
  { describe, it },
  { name: "the store of the documentation", makeStore: (clock) => simpleStore(clock), effort: allRuns ? 1 : 0.1 },
);

it("the documentation shows the store that is tested", () => {
  const page = readFileSync(join(__dirname, "../../../docs/writing-a-store.md"), "utf8");
  const source = readFileSync(join(__dirname, "simple-store.ts"), "utf8");
  expect(/```ts\n\/\/ simple-store\.ts\n([\s\S]*?)```/.exec(page)?.[1]).toBe(source);
});
