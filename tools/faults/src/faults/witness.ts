import type { Decision, FloodgateEvent } from "@floodgate/core";
import type { BreakerState } from "@floodgate/core/store";
import { clientLimit } from "./limits.js";

/** Listens to the limits of one store, to compare each HTTP response with its decision. */
export class Witness {
  /** The state of the store's breaker. */
  breaker: BreakerState = "closed";
  readonly #decisions = new Map<string, Decision[]>();

  readonly onEvent = (event: FloodgateEvent): void => {
    if (event.type === "breaker") this.breaker = event.state;
    if (!("decision" in event) || event.type === "refunded" || event.type === "settled" || event.name !== clientLimit) return;
    const known = this.#decisions.get(event.key);
    if (known === undefined) this.#decisions.set(event.key, [event.decision]);
    else known.push(event.decision);
  };

  /** The decisions for a client since the last call, oldest first. */
  take(client: string): Decision[] {
    const decisions = this.#decisions.get(client) ?? [];
    this.#decisions.delete(client);
    return decisions;
  }
}
