import type { Guard } from "../decide/guard.js";
import type { EventListener } from "../events/events.js";
import type { Receipts } from "./receipt.js";

/** How a limiter or a middleware uses its store, and who listens. */
export interface StoreClient {
  readonly guard: Guard;
  readonly onEvent: EventListener | undefined;
  readonly receipts: Receipts | undefined;
}
