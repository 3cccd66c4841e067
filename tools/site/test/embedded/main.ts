import { slidingWindowLog, tokenBucket } from "@floodgate/core";
import { mount } from "../../../../packages/simulator/src/page/algorithms/mount.js";

// A page that shows the requests of a log under two policies, as a report does. They are not in order.

const startMs = Date.UTC(2026, 10, 22, 12, 0, 5);

mount(document.querySelector("#algorithms") as HTMLElement, {
  requests: Array.from({ length: 300 }, (_, i) => startMs + ((i * 7919) % 300) * 1000),
  policies: [slidingWindowLog({ limit: 30, window: "1m" }), tokenBucket({ capacity: 5, refill: 1, every: "2s" })],
});
