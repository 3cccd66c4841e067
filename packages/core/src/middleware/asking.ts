import type { EventListener } from "../limits/events.js";
import type { Receipts } from "../limits/receipt.js";
import type { Store } from "../stores/store.js";
import { isPromise } from "../support/promises.js";

/** How a middleware asks its store, and whom it tells. */
export interface Asking {
  readonly guard: Store;
  readonly onEvent: EventListener | undefined;
  readonly receipts: Receipts | undefined;
}

/** Does what no request waits for, and tells its fault, which is no request's. Answers a promise where it is not done at once. */
export function unheard(work: () => unknown, fault: (error: unknown) => void): PromiseLike<unknown> | undefined {
  try {
    const done = work();
    return isPromise(done) ? done.then(undefined, fault) : undefined;
  } catch (error) {
    fault(error);
    return undefined;
  }
}
