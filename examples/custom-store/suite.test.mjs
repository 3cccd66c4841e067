// What a driver of your own needs: node --test
import { describe, it } from "node:test";
import { storeConformance } from "@floodgate/conformance/store";
import { databaseStore } from "@floodgate/store-database";
import { etcd } from "./etcd.mjs";

const driver = etcd(process.env.ETCD_URL ?? "http://127.0.0.1:2379");
const run = `suite-${Date.now()}`;
let stores = 0;
storeConformance(
  { describe, it },
  { name: "etcd", makeStore: (clock) => databaseStore(driver, { clock, denyCache: false, prefix: `${run}-${stores++}` }), effort: 0.2 },
);
