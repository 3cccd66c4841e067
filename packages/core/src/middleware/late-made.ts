import { type EventListener, emitWarning } from "../limits/events.js";

/** Fewer could be chance. */
const mostAnew = 10;
const mostKeys = 1000;

/**
 * Notices middlewares that an app makes anew for each request: each has a store of its own, so that every count begins at 0.
 * The signs are certain only together: a middleware is made in the same run of the event loop as it meets its first request,
 * has a store that nobody used before, and meets a key that others made like this have met on the same app, while none of them meets
 * a second request. An app that makes a middleware late and keeps it, one for each tenant, say, is told nothing.
 */
export class LateMade {
  readonly #met = new Map<string, number>();
  #told = false;

  /** A middleware that was made for this request has met a key. */
  meets(key: string, name: string, onEvent: EventListener | undefined): void {
    if (this.#told) return;
    const times = (this.#met.get(key) ?? 0) + 1;
    if (this.#met.size >= mostKeys) this.#met.clear();
    this.#met.set(key, times);
    if (times < mostAnew) return;
    this.#told = true;
    this.#met.clear();
    emitWarning(
      onEvent,
      "FLOODGATE_MADE_PER_REQUEST",
      `rateLimit is called anew for each request (limit "${name}"), and each middleware counts for itself, so nothing is limited. Call it once, when the app is set up: const limit = rateLimit({ ... }); app.use(limit).`,
    );
  }

  /** One of them has met a second request: the app keeps what it makes. */
  isKept(): void {
    this.#met.clear();
  }
}

const apps = new WeakMap<object, LateMade>();

/** What has been noticed on one app. */
export function lateMadeOn(app: object): LateMade {
  let late = apps.get(app);
  if (late === undefined) {
    late = new LateMade();
    apps.set(app, late);
  }
  return late;
}

/** Stores that a middleware has used. */
const used = new WeakSet<object>();

/** Whether this is the first use of a store. */
export function isFirstUse(scope: object): boolean {
  if (used.has(scope)) return false;
  used.add(scope);
  return true;
}
