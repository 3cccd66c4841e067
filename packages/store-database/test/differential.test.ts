import { test } from "vitest";
import { runs } from "../../../test/runs.js";
import { compareWithMemory } from "./compare-with-memory.js";
import { MapDriver } from "./map-driver.js";

const { numRuns } = runs(1200);

test(
  "three processes that use a database in turn decide, settle, block and show everything as one memory store does",
  {
    timeout: 120_000,
  },
  () => compareWithMemory(() => new MapDriver(), numRuns),
);
