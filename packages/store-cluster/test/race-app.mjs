// An app of races.test.ts: a primary that keeps the counts, and workers. Prints how many requests all workers together admitted.
import cluster from "node:cluster";
import { once } from "node:events";
import { createLimiter } from "@floodgate/core";
import { clusterStore, serveClusterStore } from "@floodgate/store-cluster";

const { workers, requests, limits, advanced } = JSON.parse(process.env.RACE);
if (cluster.isPrimary) {
  serveClusterStore();
  if (advanced) cluster.setupPrimary({ serialization: "advanced" });
  const started = Array.from({ length: workers }, () => cluster.fork());
  const counts = await Promise.all(started.map(async (worker) => (await answer(worker)).counts));
  console.log(JSON.stringify(limits.map((_, i) => counts.reduce((sum, count) => sum + count[i], 0))));
} else {
  const store = clusterStore();
  const counts = [];
  for (const [i, policy] of limits.entries()) {
    const limiter = createLimiter({ name: `limit-${i}`, policy, store, timeoutMs: 60_000, onStoreError: "deny" });
    let allowed = 0;
    let left = requests;
    const askInTurn = async () => {
      while (left-- > 0) if ((await limiter.consume("one")).allowed) allowed++;
    };
    await Promise.all(Array.from({ length: 50 }, askInTurn));
    counts.push(allowed);
  }
  process.send({ counts }, () => cluster.worker.disconnect());
}

/** The first message of a worker that is not a call of the store. */
async function answer(worker) {
  for (;;) {
    const [message] = await once(worker, "message");
    if (message.counts !== undefined) return message;
  }
}
