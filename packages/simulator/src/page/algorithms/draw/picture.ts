import type { Policy } from "@floodgate/core";
import { formatDuration } from "@floodgate/core/rules";
import type { Moment } from "../model/run.js";
import { drawBucket } from "./bucket.js";
import { drawLog } from "./log.js";
import { drawQueue } from "./queue.js";
import { pictureHeight, pictureWidth, prepared, type Theme } from "./theme.js";
import { drawWindows } from "./windows.js";

/** Draws the state of a policy as what it is: a bucket, windows, a log or a queue. */
export function drawPicture(canvas: HTMLCanvasElement, policy: Policy, { view }: Moment, nowMs: number, theme: Theme): void {
  const context = prepared(canvas, pictureWidth, pictureHeight, theme.font);
  if (context === undefined) return;
  switch (policy.algorithm) {
    case "token-bucket":
    case "gcra":
      drawBucket(context, view.kind === "bucket" ? view.level : policy.quota, policy.quota, theme);
      break;
    case "leaky-bucket":
      drawQueue(context, view.kind === "queue" ? view.length : 0, policy.capacity, theme);
      break;
    case "sliding-window-log":
      drawLog(context, view.kind === "log" ? view.units : [], policy.windowMs, nowMs, theme);
      break;
    default:
      drawWindows(context, policy, view.kind === "windows" ? view.windows : [], nowMs, theme);
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
    case "fixed-window": {
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
