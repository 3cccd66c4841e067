import { storeConformance } from "@floodgate/conformance/store";
import { describe, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { connected } from "./connected.js";

storeConformance(
  { describe, it },
  {
    name: "cluster store",
    makeStore: (clock) => connected({ clock }),
    makeBoundedStore: (clock, maxKeys) => connected({ clock, maxKeys }),
    // The server decides by the memory store, which has the whole suite.
    effort: allRuns ? 0.2 : 0.03,
  },
);
