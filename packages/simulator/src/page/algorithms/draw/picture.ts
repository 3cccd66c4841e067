import type { Policy, StateView } from "@floodgate/core";
import { formatDuration } from "@floodgate/core/rules";
import type { Moment } from "../model/run.js";

/** What a picture shows of a policy that remembers nothing: a full bucket, a queue or windows without requests. */
export function shownView(policy: Policy, { view }: Moment, nowMs: number): StateView {
  if (view.kind !== "empty") return view;
  switch (policy.algorithm) {
    case "token-bucket":
    case "gcra":
      return { kind: "bucket", level: policy.quota, capacity: policy.quota };
    case "leaky-bucket":
      return { kind: "queue", length: 0, capacity: policy.capacity, drainedAtMs: nowMs };
    case "sliding-window-log":
      return { kind: "log", windowMs: policy.windowMs, limit: policy.limit, units: [], total: 0 };
    case "concurrency":
      return { kind: "held", limit: policy.limit, held: [], total: 0, used: { kind: "empty" } };
    case "calendar-window":
      return { kind: "windows", windowMs: policy.spanMs, limit: policy.limit, windows: [] };
    default: {
      const partMs = policy.algorithm === "fixed-window" ? policy.windowMs : policy.bucketMs;
      const startMs = Math.floor(nowMs / partMs) * partMs;
      const windows = [{ startMs, endMs: startMs + partMs, count: 0, weight: 1 }];
      return { kind: "windows", windowMs: policy.windowMs, limit: policy.limit, windows };
    }
  }
}

/** The state in a sentence. It is shown below the picture, which says the same. */
export function stateText(policy: Policy, { view, decision }: Moment, nowMs: number): string {
  switch (policy.algorithm) {
    case "token-bucket":
    case "gcra": {
      if (view.kind !== "bucket") return `Full: ${policy.quota} ${policy.quota === 1 ? "token" : "tokens"}`;
      const next = view.refillsAtMs === undefined ? "" : `, more in ${seconds(view.refillsAtMs - nowMs)}`;
      return `${decimal(view.level)} of ${view.capacity} tokens${next}`;
    }
    case "leaky-bucket":
      if (view.kind !== "queue") return "Nobody waits";
      return `${Math.ceil(view.length)} of ${view.capacity} in the queue, empty in ${seconds(view.drainedAtMs - nowMs)}`;
    case "sliding-window-log":
      return `${view.kind === "log" ? view.total : 0} of ${policy.limit} in the last ${formatDuration(policy.windowMs)}`;
    case "sliding-window-counter": {
      const windows = view.kind === "windows" ? view.windows : [];
      const leaving = windows.find(({ weight }) => weight < 1);
      const rest = windows.filter((window) => window !== leaving).reduce((sum, { count }) => sum + count, 0);
      if (leaving === undefined) return `${rest} of ${policy.limit} counted`;
      return `${leaving.count} × ${Math.floor(leaving.weight * 100)} % + ${rest} = ${policy.limit - decision.remaining} of ${policy.limit}`;
    }
    case "concurrency":
      return `${view.kind === "held" ? view.total : 0} of ${policy.limit} in flight`;
    case "fixed-window":
    case "calendar-window": {
      const [window] = view.kind === "windows" ? view.windows : [];
      if (window === undefined) return `0 of ${policy.limit} in this window`;
      return `${window.count} of ${policy.limit}, new window in ${seconds(window.endMs - nowMs)}`;
    }
  }
}

const decimal = (number: number): string => (Math.floor(number * 10) / 10).toFixed(Number.isInteger(number) ? 0 : 1);

function seconds(ms: number): string {
  if (ms < 60_000) return `${(Math.ceil(ms / 100) / 10).toFixed(1)}\u00a0s`;
  return formatDuration(Math.ceil(ms / 1000) * 1000);
}
