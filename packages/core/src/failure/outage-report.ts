import type { BreakerState, EventListener } from "../events/events.js";
import { listenerOf, tellAll } from "../events/listeners.js";
import { reasonOf } from "../support/errors.js";
import { steadyMs } from "../support/runtime.js";
import { warn } from "../support/warn.js";

/** At most one outage per minute is reported on the console. */
const consolePauseMs = 60_000;

/** Tells of the changes of a store's breakers: to the listeners, and of outages to the console if there is no listener. */
export class OutageReport {
  readonly #listeners = new Set<{ readonly onEvent: EventListener }>();
  /** The parts whose breakers are not closed. */
  readonly #down = new Set<string>();
  /** Whether this outage was reported on the console. */
  #isReported = false;
  #reportedAtMs = Number.NEGATIVE_INFINITY;

  /** Sends each change to a listener, once even if the listener was added several times. Returns a function that removes it. */
  listen(onEvent: EventListener): () => void {
    const listening = { onEvent: listenerOf(onEvent) };
    this.#listeners.add(listening);
    return () => void this.#listeners.delete(listening);
  }

  /** @param part the part of the store that the breaker is for; "" for the whole store. */
  tell(part: string, state: BreakerState, error: unknown): void {
    if (state === "closed") this.#down.delete(part);
    else this.#down.add(part);
    const listeners = new Set([...this.#listeners].map(({ onEvent }) => onEvent));
    tellAll(listeners, { type: "breaker", state, ...(part !== "" && { part }) });
    if (state === "open" && listeners.size === 0) this.#reportOutage(part, error);
    if (state === "closed" && this.#down.size === 0) this.#reportReturn();
  }

  /** Reports an outage once, and at most one outage a minute. A second one within the minute is reported later, if it still lasts. */
  #reportOutage(part: string, error: unknown): void {
    const nowMs = steadyMs();
    if (this.#isReported || nowMs - this.#reportedAtMs < consolePauseMs) return;
    this.#isReported = true;
    this.#reportedAtMs = nowMs;
    const store = part === "" ? "The store" : `The part ${part} of the store`;
    const fault = error === undefined ? "" : ` The last fault: ${reasonOf(error).why}`;
    warn(
      "FLOODGATE_STORE_DOWN",
      `${store} failed several times, so it is only probed now, until it is back. Each limit applies its \`onStoreError\`; by default, requests pass uncounted. \`onEvent\` reports every fault.${fault}`,
    );
  }

  /** If the outage was reported on the console, its end is too, even if there is a listener by then. */
  #reportReturn(): void {
    if (!this.#isReported) return;
    this.#isReported = false;
    warn("FLOODGATE_STORE_BACK", "The store is back and decides again.");
  }
}
