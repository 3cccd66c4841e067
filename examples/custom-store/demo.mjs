// Two processes share one limit in one SQLite file: node demo.mjs
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createLimiter, fixedWindow } from "@floodgate/core";
import { sqliteStore } from "./sqlite-store.mjs";

const folder = await mkdtemp(join(tmpdir(), "floodgate-"));
const file = join(folder, "limits.db");
try {
  const worker = () => promisify(execFile)(process.execPath, [join(import.meta.dirname, "worker.mjs"), file, "100"]);
  const workers = (await Promise.all([worker(), worker()])).map(({ stdout }) => JSON.parse(stdout));
  const [first, second] = workers.map(({ allowed }) => allowed);
  console.log(`Two processes sent 100 requests each: ${first} and ${second} of them passed, ${first + second} together.`);

  const store = sqliteStore(file);
  const limiter = createLimiter({
    name: "shared",
    policy: fixedWindow({ limit: 100, window: "365d" }),
    store,
    receiptSecret: "a secret of at least 32 characters",
  });
  const { receipt } = workers.find(({ receipt }) => receipt !== undefined);
  console.log(
    `This process redeems a receipt of theirs: ${limiter.settle("user:42", receipt, 0)} units, and again: ${limiter.settle("user:42", receipt, 0)}.`,
  );
  console.log(`${limiter.peek("user:42").remaining} is left.`);
  store.close();
} finally {
  await rm(folder, { recursive: true });
}
