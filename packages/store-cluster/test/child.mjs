// A child process of processes.long.test.ts: consumes a key when it is told to, and sends what it saw.
import { createLimiter, fixedWindow } from "@floodgate/core";
import { clusterStore } from "@floodgate/store-cluster";

const policy = fixedWindow({ limit: 5, window: "365d" });
const events = [];
const limiter = createLimiter({
  name: "jobs",
  policy,
  store: clusterStore(),
  timeoutMs: Number(process.env.TIMEOUT_MS),
  receiptSecret: "a secret that all of these processes have",
  onEvent: (event) => event.type === "store-error" && events.push(event.error.message),
});

process.on("message", async ({ receipt, settle }) => {
  if (settle !== undefined) process.send({ units: await limiter.settle("one", settle, 0) });
  else if (receipt === true) process.send({ receipt: limiter.receipt(await limiter.consume("one", { cost: 2 })) });
  else if (receipt === false) {
    const { allowed, degraded, remaining } = await limiter.consume("one");
    process.send({ allowed, degraded, remaining, errors: events.splice(0) });
  }
});
process.send({ ready: true });
