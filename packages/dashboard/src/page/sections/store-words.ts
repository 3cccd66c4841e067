import type { StoreInfo } from "../../contract.js";

/** Whether a store is asked as usual. */
export const isWell = (store: StoreInfo): boolean => store.breaker === undefined || store.breaker === "closed";

export const breakerWords = {
  closed: { text: "Answers", look: "good", means: "The store is asked for each decision." },
  "half-open": { text: "Being probed", look: "warn", means: "Single requests try whether it answers again." },
  open: {
    text: "Not asked",
    look: "bad",
    means: "It failed several times. Requests are decided without it until it answers again.",
  },
} as const;

/** The 99th percentile of the slowest store. */
export function slowest(stores: readonly StoreInfo[]): number | undefined {
  const all = stores.flatMap(({ latency }) => (latency === undefined ? [] : [latency.p99Ms]));
  return all.length === 0 ? undefined : Math.max(...all);
}
