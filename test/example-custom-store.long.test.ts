import { execFile } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { etcd } from "../examples/custom-store/etcd.mjs";
import { storeConformance } from "../packages/conformance/src/store.js";
import { databaseStore } from "../packages/store-database/src/index.js";
import { type DatabaseServer, startEtcd } from "../tools/test-servers/src/index.js";

let server: DatabaseServer;
const url = (): string => `http://${server.host}:${server.port}`;
beforeAll(async () => {
  server = await startEtcd();
});
afterAll(() => server.stop());

let stores = 0;
storeConformance(
  { describe, it },
  {
    name: "the etcd driver of the example",
    makeStore: (clock) => databaseStore(etcd(url()), { clock, denyCache: false, prefix: `suite-${stores++}` }),
    effort: 0.2,
  },
);

it("two processes of the example share one limit", async () => {
  const app = join(import.meta.dirname, "../examples/custom-store/app.mjs");
  const children = [0, 0].map(() => execFile(process.execPath, [app], { env: { ...process.env, ETCD_URL: url(), PORT: "0" } }));
  try {
    const urls = await Promise.all(
      children.map(async ({ stdout }) => String((await once(stdout as NodeJS.ReadableStream, "data"))[0]).trim()),
    );
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => fetch(urls[i % 2] as string)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(15);
  } finally {
    for (const child of children) child.kill("SIGKILL");
  }
});
