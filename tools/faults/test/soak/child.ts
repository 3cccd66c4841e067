import { setTimeout as sleep } from "node:timers/promises";
import { Traffic } from "./traffic.js";

/** A sample after a round, when all its requests are done. */
export interface Sample {
  readonly decisions: number;
  /** The heap and its typed arrays, after garbage collection. */
  readonly heapBytes: number;
  readonly rssBytes: number;
  /** Listeners on the process and the Redis clients. */
  readonly listeners: number;
  readonly timers: number;
  /** Keys in the memory store. */
  readonly memoryKeys: number;
  /** Requests without a response. */
  readonly lost: number;
}

// A separate process, so that its heap contains only the traffic. Runs a round per message, and ends when its parent disconnects.
const traffic = await Traffic.start(Number(process.argv[2]));

process.on("message", async (message) => {
  if (message === "round") {
    await traffic.round();
    process.send?.(await sample());
  } else {
    await traffic.close();
    process.disconnect();
  }
});
process.send?.("ready");

async function sample(): Promise<Sample> {
  // By now late replies have arrived and pending timers have fired.
  await sleep(150);
  global.gc?.();
  await sleep(0);
  global.gc?.();
  const { heapUsed, external, rss } = process.memoryUsage();
  return {
    decisions: traffic.decisions,
    heapBytes: heapUsed + external,
    rssBytes: rss,
    listeners: listenersOf(process) + traffic.clients.reduce((sum, { redis }) => sum + listenersOf(redis), 0),
    timers: process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length,
    memoryKeys: traffic.memory.size,
    lost: traffic.lost,
  };
}

function listenersOf(emitter: unknown): number {
  const { eventNames, listenerCount } = emitter as NodeJS.EventEmitter;
  return eventNames.call(emitter).reduce((sum, name) => sum + listenerCount.call(emitter, name), 0);
}
