import type { Check } from "../decide/limit.js";
import type { EventListener } from "../events/events.js";
import { emitWarning } from "../events/listeners.js";
import type { RequestContext } from "../requests/request-context.js";
import { shown } from "../support/errors.js";
import { getOrMake } from "../support/get-or-make.js";

// Mistakes in how an app mounts its middlewares. They show only in traffic, so they are warnings.

type Seen = Pick<RequestContext, "previous" | "rules">;

/** An app's first requests show the mistake. */
const maxLooks = 1000;
const maxKept = 100;

const byMiddleware = new WeakMap<object, DoubleCounts>();

/**
 * Finds two middlewares that count one request twice: under one name and one key, in one store. Retaining each request's checks would
 * cost too much. So the second middleware that meets a request under the name of the first makes the first keep the checks of its next
 * requests, and compares their keys.
 */
export class DoubleCounts {
  /** The number of requests whose checks are still to be kept. */
  keepsLeft = 0;
  readonly #scope: object;
  readonly #kept = new WeakMap<Seen, readonly Check[]>();
  #looksLeft = maxLooks;

  readonly #onKeep: () => void;

  /**
   * @param scope the identity of the middleware's store.
   * @param onKeep called when checks are to be kept, so that \`notice\` is called for the next requests.
   */
  constructor(middleware: object, scope: object, onKeep: () => void) {
    this.#scope = scope;
    this.#onKeep = onKeep;
    byMiddleware.set(middleware, this);
  }

  /** Call it for a request that the middleware counts. */
  notice(context: Seen, checks: readonly Check[], onEvent: EventListener | undefined): void {
    if (this.keepsLeft > 0) {
      this.keepsLeft--;
      this.#kept.set(context, checks);
    }
    if (context.previous === undefined || this.#looksLeft === 0) return;
    this.#looksLeft--;
    for (let seen: RequestContext | undefined = context.previous; seen !== undefined; seen = seen.previous) {
      const other = byMiddleware.get(seen.by);
      if (other === undefined || other === this || other.#scope !== this.#scope) continue;
      const twice = checks.find(({ limit, key }) => other.#hasCounted(seen as RequestContext, limit.name, key));
      if (twice === undefined) continue;
      this.#looksLeft = 0;
      const name = shown(twice.limit.name);
      const message = `Two middlewares with the name ${name} and the same store count one request twice. Mount one of them only, or give each its own name.`;
      emitWarning(onEvent, "FLOODGATE_COUNTED_TWICE", message, `FLOODGATE_COUNTED_TWICE ${name}`);
      return;
    }
  }

  #hasCounted(context: Seen, name: string, key: string): boolean {
    if (!context.rules.some((rule) => rule.name === name)) return false;
    const kept = this.#kept.get(context);
    if (kept === undefined) {
      this.keepsLeft = maxKept;
      this.#onKeep();
    }
    return kept?.some((check) => check.limit.name === name && check.key === key) === true;
  }
}

/** Fewer middlewares with the same key could be chance. */
const minSuspects = 10;
const maxKeys = 1000;

/**
 * Finds an app that makes a new middleware for each request: each has its own store, so every count begins at 0. A suspect is a middleware
 * that meets its first request in the run of the event loop that made it, and has a store that nobody used before. The app is warned if
 * several suspects meet the same key and none of them meets a second request. So an app may make a middleware during a request and keep it,
 * such as one for each tenant.
 */
export class MadePerRequest {
  /** How many suspects met each key. */
  readonly #suspects = new Map<string, number>();
  #hasWarned = false;

  /** Records that a suspect met a key. */
  add(key: string, name: string, onEvent: EventListener | undefined): void {
    if (this.#hasWarned) return;
    const count = (this.#suspects.get(key) ?? 0) + 1;
    if (this.#suspects.size >= maxKeys) this.#suspects.clear();
    this.#suspects.set(key, count);
    if (count < minSuspects) return;
    this.#hasWarned = true;
    this.#suspects.clear();
    emitWarning(
      onEvent,
      "FLOODGATE_MADE_PER_REQUEST",
      `rateLimit is called anew for each request (limit "${name}"), and each middleware counts for itself, so nothing is limited. Call it once, when the app is set up: const limit = rateLimit({ ... }); app.use(limit).`,
    );
  }

  /** Records that a suspect met a second request, so the app keeps its middlewares. */
  clear(): void {
    this.#suspects.clear();
  }
}

const apps = new WeakMap<object, MadePerRequest>();

/** The suspects of an app. */
export function madePerRequestOf(app: object): MadePerRequest {
  return getOrMake(apps, app, () => new MadePerRequest());
}

const usedStores = new WeakSet<object>();

/** Whether no middleware used this store before. */
export function isFirstUse(scope: object): boolean {
  if (usedStores.has(scope)) return false;
  usedStores.add(scope);
  return true;
}
