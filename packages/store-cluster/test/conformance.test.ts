import { storeConformance } from "@floodgate/conformance/store";
import { describe, it } from "vitest";
import { connected } from "./connected.js";

storeConformance(
  { describe, it },
  {
    name: "cluster store",
    makeStore: (clock) => connected({ clock }),
    makeBoundedStore: (clock, maxKeys) => connected({ clock, maxKeys }),
    // The server decides by the memory store, which has the whole suite.
    effort: 0.2,
  },
);
