import type { EventListener } from "@floodgate/core";
import { activeListener, type EvictionEvent, listenerOf } from "@floodgate/core/store";

/** Counts the live keys that a full store has evicted, and reports them. */
export class Evictions {
  count = 0;
  readonly #onEvent: EventListener | undefined;
  /** Those of the current step, which the listener has not received yet. */
  readonly #untold: EvictionEvent[] = [];

  constructor(onEvent: EventListener | undefined) {
    this.#onEvent = listenerOf(onEvent);
  }

  add(name: string, key: string): void {
    this.count++;
    if (activeListener(this.#onEvent) !== undefined) this.#untold.push({ type: "evicted", name, key });
  }

  /** Call it once a step is whole, because a listener may throw, or call the store. */
  tell(): void {
    while (this.#untold.length > 0) {
      const event = this.#untold.shift() as EvictionEvent;
      activeListener(this.#onEvent)?.(event);
    }
  }
}
