import { type EventListener, emitWarning } from "../limits/events.js";
import type { Meeting } from "../requests/meeting.js";
import type { Check } from "../stores/store.js";
import { shown } from "../support/errors.js";

type Met = Pick<Meeting, "before" | "rules">;

/** This mistake shows in an app's first requests. */
const mostLooks = 1000;
const mostKept = 100;

const byMiddleware = new WeakMap<object, DoubleCounts>();

/**
 * Finds two middlewares that count one request twice: under one name and one key, in one store. Retaining each request's checks would
 * cost too much. So the second middleware that meets a request under the name of the first makes the first keep the checks of its next
 * requests, and compares their keys.
 */
export class DoubleCounts {
  /** How many requests' checks are still to be kept. */
  keepsLeft = 0;
  readonly #scope: object;
  readonly #kept = new WeakMap<Met, readonly Check[]>();
  #looksLeft = mostLooks;

  /** @param scope what the counts of the middleware's store are known by. */
  constructor(middleware: object, scope: object) {
    this.#scope = scope;
    byMiddleware.set(middleware, this);
  }

  /** Call it for a request that the middleware counts, if `keepsLeft` is above 0 or the request met a middleware before. */
  notice(meeting: Met, checks: readonly Check[], onEvent: EventListener | undefined): void {
    if (this.keepsLeft > 0) {
      this.keepsLeft--;
      this.#kept.set(meeting, checks);
    }
    if (this.#looksLeft === 0) return;
    this.#looksLeft--;
    for (let before = meeting.before; before !== undefined; before = before.before) {
      const other = byMiddleware.get(before.by);
      if (other === undefined || other === this || other.#scope !== this.#scope) continue;
      const twice = checks.find(({ limit, key }) => other.#hasCounted(before, limit.name, key));
      if (twice === undefined) continue;
      this.#looksLeft = 0;
      const name = shown(twice.limit.name);
      const message = `Two middlewares with the name ${name} and the same store count one request twice. Mount one of them only, or give each its own name.`;
      emitWarning(onEvent, "FLOODGATE_COUNTED_TWICE", message, `FLOODGATE_COUNTED_TWICE ${name}`);
      return;
    }
  }

  #hasCounted(meeting: Met, name: string, key: string): boolean {
    if (!meeting.rules.some((rule) => rule.name === name)) return false;
    const kept = this.#kept.get(meeting);
    if (kept === undefined) this.keepsLeft = mostKept;
    return kept?.some((check) => check.limit.name === name && check.key === key) === true;
  }
}
