import { describe, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { storeConformance } from "../../conformance/src/store.js";
import { databaseStore } from "../src/index.js";
import { MapDriver } from "./map-driver.js";

storeConformance(
  { describe, it },
  {
    name: "a store in a database",
    makeStore: (clock) => databaseStore(new MapDriver(), { clock, denyCache: false }),
    effort: allRuns ? 1 : 0.1,
  },
);
