import { storeConformance } from "@floodgate/conformance/store";
import { describe, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { memoryStore } from "../src/memory-store.js";

storeConformance(
  { describe, it },
  {
    name: "memory store",
    makeStore: (clock) => memoryStore({ clock }),
    makeBoundedStore: (clock, maxKeys) => memoryStore({ clock, maxKeys }),
    effort: allRuns ? 1 : 0.25,
  },
);
