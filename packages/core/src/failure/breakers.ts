import type { Check } from "../decide/limit.js";
import { type Store, scopeOf } from "../decide/store.js";
import type { BreakerState, EventListener } from "../events/events.js";
import { getOrMake } from "../support/get-or-make.js";
import { Breaker, type Circuit } from "./breaker.js";
import { OutageReport } from "./outage-report.js";

type Keyed = Pick<Check, "key">;

/** If there are more parts, those that work are forgotten: the servers of a Cluster may change their addresses for ever. */
const mostParts = 100;

/** A part that nobody has asked for so long, although it may be probed, has left the store: a Cluster has replaced the server. */
const leftAfterMs = 60_000;

/** The circuit breakers of a store: one for each part that fails separately. A store without parts has one. */
export class Breakers {
  readonly #shardOf: ((key: string) => string) | undefined;
  readonly #report = new OutageReport();
  readonly #whole = new Breaker("", this.#report);
  readonly #parts = new Map<string, Breaker>();

  constructor(store: Pick<Store, "shardOf">) {
    this.#shardOf = store.shardOf?.bind(store);
  }

  /** Milliseconds until every part has been probed, at least 1; 0 if all breakers are closed. */
  get waitMs(): number {
    return Math.max(...this.all().map(({ waitMs }) => waitMs));
  }

  listen(onEvent: EventListener): () => void {
    return this.#report.listen(onEvent);
  }

  /** The breakers that a call with these checks must pass. */
  of(checks: Keyed | readonly Keyed[]): Circuit {
    const shardOf = this.#shardOf;
    if (shardOf === undefined) return this.#whole;
    if ("key" in checks) return this.#ofPart(shardOf(checks.key));
    const parts = new Set(checks.map(({ key }) => shardOf(key)));
    const breakers = new Map([...parts].map((part) => [part, this.#ofPart(part)]));
    return breakers.size === 1 ? ([...breakers.values()][0] as Breaker) : new SeveralBreakers(breakers);
  }

  #ofPart(part: string): Breaker {
    return getOrMake(this.#parts, part, () => {
      if (this.#parts.size >= mostParts) this.#forget(({ isIdle }) => isIdle);
      return new Breaker(part, this.#report);
    });
  }

  #forget(which: (breaker: Breaker) => boolean): void {
    for (const [part, breaker] of this.#parts) {
      if (!which(breaker)) continue;
      this.#parts.delete(part);
      breaker.leave();
    }
  }

  /** The breaker of the whole store first. */
  all(): Breaker[] {
    this.#forget(({ unaskedMs }) => unaskedMs > leftAfterMs);
    return [this.#whole, ...this.#parts.values()];
  }
}

/** A call to several parts of a store at once. It is made only if all their breakers admit it. */
class SeveralBreakers implements Circuit {
  readonly #breakers: ReadonlyMap<string, Breaker>;
  readonly #periods = new Map<Breaker, number>();

  constructor(breakers: ReadonlyMap<string, Breaker>) {
    this.#breakers = breakers;
  }

  admits(timeoutMs: number): number {
    const breakers = [...this.#breakers.values()];
    // A part is probed only if the others admit the call too.
    if (breakers.some(({ refuses }) => refuses)) return 0;
    for (const breaker of breakers) this.#periods.set(breaker, breaker.admits(timeoutMs));
    return 1;
  }

  succeeded(): void {
    for (const [breaker, period] of this.#periods) breaker.succeeded(period);
  }

  unused(): void {
    for (const [breaker, period] of this.#periods) breaker.unused(period);
  }

  /** An error that names its part says nothing about the others. */
  failed(_period: number, error?: unknown): void {
    const failed = this.#breakers.get(partThatFailed(error) ?? "");
    for (const [breaker, period] of this.#periods) {
      if (failed === undefined || breaker === failed) breaker.failed(period, error);
    }
  }
}

const failedParts = new WeakMap<object, string>();

/** Notes in which part of a store an error arose. Returns the error. */
export function failedIn<E>(part: string, error: E): E {
  if (typeof error === "object" && error !== null) failedParts.set(error, part);
  return error;
}

function partThatFailed(error: unknown): string | undefined {
  return typeof error === "object" && error !== null ? failedParts.get(error) : undefined;
}

/** Shared by all users of a store, and by stores over the same data. */
const breakersOfScopes = new WeakMap<object, Breakers>();

export function breakersOf(store: Store): Breakers {
  return getOrMake(breakersOfScopes, scopeOf(store), () => new Breakers(store));
}

/** The states of a store's breakers, by the part of the store; by "" for a store without parts. Empty if nobody has used one. */
export function breakerStates(store: Store): ReadonlyMap<string, BreakerState> {
  const all = breakersOfScopes.get(scopeOf(store))?.all() ?? [];
  // A store with parts uses no breaker for the whole.
  return new Map(all.slice(all.length > 1 ? 1 : 0).map(({ part, state }) => [part, state]));
}
