// One subject of `databases` for processes of one machine: the primary keeps the counts, and its two workers decide as often as they can.
import cluster from "node:cluster";
import { ClusterMemoryStorePrimary, ClusterMemoryStoreWorker } from "@express-rate-limit/cluster-memory-store";
import { clusterStore, serveClusterStore } from "@floodgate/store-cluster";
import { RateLimiterCluster, RateLimiterClusterMaster } from "rate-limiter-flexible";
import { cpuUs, serve } from "./lib/child.mjs";
import { askInFlight, askOf, neverReached } from "./lib/in-flight.mjs";

const windowMs = 3_600_000;

const subjects = {
  "a message and its answer": {
    primary: () => cluster.on("message", (worker, message) => message.echo !== undefined && worker.send(message)),
    worker() {
      const waiting = new Map();
      process.on("message", ({ echo }) => waiting.get(echo)?.());
      let sent = 0;
      return async (key) => {
        const echo = sent++;
        process.send({ echo, key });
        await new Promise((resolve) => waiting.set(echo, resolve));
        waiting.delete(echo);
      };
    },
  },
  Floodgate: {
    primary: () => serveClusterStore(),
    worker: () => askOf(clusterStore()),
  },
  "rate-limiter-flexible": {
    primary: () => new RateLimiterClusterMaster(),
    worker() {
      const limiter = new RateLimiterCluster({ keyPrefix: "bench", points: neverReached, duration: windowMs / 1000, timeoutMs: 60_000 });
      return (key) => limiter.consume(key);
    },
  },
  "express-rate-limit": {
    primary: () => new ClusterMemoryStorePrimary().init(),
    worker() {
      const store = new ClusterMemoryStoreWorker({ prefix: "bench" });
      store.init({ windowMs });
      return (key) => store.increment(key);
    },
  },
};

const { primary, worker } = subjects[process.argv[2]];
if (cluster.isPrimary) {
  primary();
  const workers = [cluster.fork(), cluster.fork()];
  // The subject's own messages arrive too, several in one turn.
  const answerOf = (each) =>
    new Promise((resolve) => {
      each.on("message", function hear({ ran }) {
        if (ran === undefined) return;
        each.off("message", hear);
        resolve(ran);
      });
    });
  const ready = Promise.all(workers.map(answerOf));
  serve(async ({ inFlight, seconds, keys }) => {
    await ready;
    const startUs = cpuUs();
    const asked = workers.slice(0, inFlight).map((each, i, { length }) => {
      const answer = answerOf(each);
      each.send({ run: { inFlight: Math.floor((inFlight + i) / length), seconds, keys } });
      return answer;
    });
    const runs = await Promise.all(asked);
    const sum = (name) => runs.reduce((total, run) => total + run[name], 0);
    return { perSecond: sum("perSecond"), cpuUs: (cpuUs() - startUs + sum("cpu")) / sum("asked") };
  });
} else {
  const ask = worker();
  process.on("message", async ({ run }) => {
    if (run !== undefined) process.send({ ran: await askInFlight(ask, run) });
  });
  process.send({ ran: "ready" });
}
