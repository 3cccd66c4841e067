// One of several processes that share a limit of 100: node worker.mjs <file> <requests>
import { setTimeout } from "node:timers/promises";
import { createLimiter, fixedWindow } from "@floodgate/core";
import { sqliteStore } from "./sqlite-store.mjs";

const [file, requests] = process.argv.slice(2);
const store = sqliteStore(file, { busyMs: 30_000 });
const limiter = createLimiter({
  name: "shared",
  policy: fixedWindow({ limit: 100, window: "365d" }),
  store,
  receiptSecret: "a secret of at least 32 characters",
});

const decisions = [];
for (let i = 0; i < Number(requests); i++) {
  decisions.push(limiter.consume("user:42"));
  await setTimeout(1); // let the other process in
}
const allowed = decisions.filter((decision) => decision.allowed);
console.log(JSON.stringify({ allowed: allowed.length, receipt: allowed.length > 0 ? limiter.receipt(allowed[0]) : undefined }));
store.close();
