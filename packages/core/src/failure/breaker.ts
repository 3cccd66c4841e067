import type { Check } from "../decide/decision.js";
import { type Store, scopeOf } from "../decide/store.js";
import type { BreakerState, EventListener } from "../events/events.js";
import { listenerOf, tellAll } from "../events/listeners.js";
import { reasonOf } from "../support/errors.js";
import { getOrMake } from "../support/maps.js";
import { steadyMs } from "../support/runtime.js";
import { warn } from "../support/warn.js";

/** The breaker opens after five failures in a row: the newest five bits of the outcomes. */
const inARowMask = 2 ** 5 - 1;

/** The breaker also opens after this many failures among the last twenty calls. */
const maxFaults = 10;
const lastCallsMask = 2 ** 20 - 1;

/** The pause before a probe. It varies by a quarter, so that many processes do not probe at the same moment. */
const pauseMs = 300;

/** Whether a store may be called, and what came of it. A circuit breaker, or several for a call to several parts of a store. */
export interface Circuit {
  /**
   * Whether a call within `timeoutMs` may go to the store. Returns 0 for no, else the period to pass to `succeeded` or `failed`. The first
   * request after the pause is the probe. If it reports nothing in time, the next request probes.
   */
  admits(timeoutMs: number): number;
  succeeded(period: number): void;
  /** Reports that the store failed, or did not answer in time. */
  failed(period: number, error?: unknown): void;
  /** Reports that the call was answered without asking the store. The next request may probe. */
  unused(period: number): void;
}

/** A circuit breaker: stops calling a store, or a part of it, that fails, so that requests do not wait for it, and probes for its return. */
export class Breaker implements Circuit {
  #state: BreakerState = "closed";
  /** Incremented with each change. The outcome of a call from an earlier period is ignored. */
  #period = 1;
  /** The last twenty calls as bits, the newest lowest: 1 for a failure. */
  #outcomes = 0;
  #probeAtMs = 0;
  readonly part: string;
  readonly #report: OutageReport;

  /** @param part the part of the store; "" for the whole store. */
  constructor(part: string, report: OutageReport) {
    this.part = part;
    this.#report = report;
  }

  get state(): BreakerState {
    return this.#state;
  }

  /** Milliseconds until the next probe, at least 1; 0 if the breaker is closed. */
  get waitMs(): number {
    return this.#state === "closed" ? 0 : Math.max(1, Math.ceil(this.#probeAtMs - steadyMs()));
  }

  get isIdle(): boolean {
    return this.#state === "closed" && this.#outcomes === 0;
  }

  get refuses(): boolean {
    return this.#state !== "closed" && steadyMs() < this.#probeAtMs;
  }

  /** How long nobody has probed it although it may be probed, in milliseconds. */
  get unaskedMs(): number {
    return this.#state === "closed" ? 0 : steadyMs() - this.#probeAtMs;
  }

  /** Closes it, because its part has left the store. Calls in flight count no more: nobody would probe it again. */
  leave(): void {
    this.#become("closed");
  }

  admits(timeoutMs: number): number {
    if (this.#state === "closed") return this.#period;
    if (this.refuses) return 0;
    this.#probeAtMs = steadyMs() + timeoutMs + pauseMs;
    this.#become("half-open");
    return this.#period;
  }

  succeeded(period: number): void {
    if (period !== this.#period) return;
    this.#outcomes = (this.#outcomes << 1) & lastCallsMask;
    if (this.#state !== "closed") this.#become("closed");
  }

  failed(period: number, error?: unknown): void {
    if (period !== this.#period) return;
    this.#outcomes = ((this.#outcomes << 1) | 1) & lastCallsMask;
    if (this.#state === "closed" && (this.#outcomes & inARowMask) !== inARowMask && onesIn(this.#outcomes) < maxFaults) return;
    this.#probeAtMs = steadyMs() + pauseMs * (0.75 + Math.random() / 2);
    this.#become("open", error);
  }

  unused(period: number): void {
    if (period === this.#period && this.#state === "half-open") this.#probeAtMs = steadyMs();
  }

  #become(state: BreakerState, error?: unknown): void {
    this.#period++;
    this.#outcomes = 0;
    if (state === this.#state) return;
    this.#state = state;
    this.#report.tell(this.part, state, error);
  }
}

function onesIn(bits: number): number {
  let count = 0;
  for (let left = bits; left !== 0; left &= left - 1) count++;
  return count;
}

/** At most one outage per minute is reported on the console. */
const consolePauseMs = 60_000;

/** Tells of the changes of a store's breakers: to the listeners, and of outages to the console if there is no listener. */
export class OutageReport {
  readonly #listeners = new Set<{ readonly onEvent: EventListener }>();
  /** The parts whose breakers are not closed. */
  readonly #down = new Set<string>();
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
    // If the outage was reported on the console, its end is too, even if there is a listener by then.
    if (state !== "closed" || this.#down.size > 0 || !this.#isReported) return;
    this.#isReported = false;
    warn("FLOODGATE_STORE_BACK", "The store is back and decides again.");
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
      `${store} failed several times, so it is only probed until it is back. Meanwhile \`onStoreError\` decides; by default, requests pass uncounted. \`onEvent\` reports every fault.${fault}`,
    );
  }
}

type Keyed = Pick<Check, "key">;

/** If there are more parts, those that work are forgotten: the servers of a Cluster may change their addresses for ever. */
const maxParts = 100;

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

  of(checks: Keyed | readonly Keyed[]): Circuit {
    const shardOf = this.#shardOf;
    if (shardOf === undefined) return this.#whole;
    if ("key" in checks) return this.#ofPart(shardOf(checks.key));
    const breakers = [...new Set(checks.map(({ key }) => shardOf(key)))].map((part) => this.#ofPart(part));
    return breakers.length === 1 ? (breakers[0] as Breaker) : new SeveralBreakers(breakers);
  }

  #ofPart(part: string): Breaker {
    return getOrMake(this.#parts, part, () => {
      if (this.#parts.size >= maxParts) this.#forget(({ isIdle }) => isIdle);
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
  readonly #breakers: readonly Breaker[];
  readonly #periods = new Map<Breaker, number>();

  constructor(breakers: readonly Breaker[]) {
    this.#breakers = breakers;
  }

  admits(timeoutMs: number): number {
    // A part is probed only if the others admit the call too.
    if (this.#breakers.some(({ refuses }) => refuses)) return 0;
    for (const breaker of this.#breakers) this.#periods.set(breaker, breaker.admits(timeoutMs));
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
    const failedPart = failedParts.get(error as object);
    const failed = this.#breakers.find(({ part }) => part === failedPart);
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
