// What a store of your own needs: node --test
import { describe, it } from "node:test";
import { storeConformance } from "@floodgate/conformance/store";
import { sqliteStore } from "./sqlite-store.mjs";

storeConformance(
  { describe, it },
  { name: "SQLite store", makeStore: (clock) => sqliteStore(":memory:", { clock }), effort: Number(process.env.EFFORT ?? 1) },
);
