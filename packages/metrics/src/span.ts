import type { FloodgateEvent } from "@floodgate/core";
import { trace } from "@opentelemetry/api";

/** Adds an event to the active span of a request that was not plainly let through. It names the rule and the result, never the key. */
export function markSpan(event: FloodgateEvent): void {
  switch (event.type) {
    case "limited":
    case "shadow-limited":
    case "degraded":
      break;
    case "missing-key":
      if (event.rejected) break;
      return;
    default:
      return;
  }
  trace.getActiveSpan()?.addEvent("floodgate.rate_limiting", {
    "floodgate.rate_limiting.rule": event.name,
    "floodgate.rate_limiting.result": event.type,
  });
}
