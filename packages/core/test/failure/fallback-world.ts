import { afterEach, beforeEach, vi } from "vitest";
import { expectWarnings } from "../../../../test/expected-warnings.js";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { createLimiter, type Decision, fixedWindow, type Limiter, type Policy, type Store } from "../../src/index.js";
import { type Fault, FaultyStore } from "../faulty-store.js";

export const policy = fixedWindow({ limit: 12, window: "1h" });
export const timeoutMs = 50;
export const startMs = 1_789_948_800_000;
/** Generous, for machines that run other tests at the same time. */
export const patienceMs = 60_000;
/** Longer than the breaker's back-off. */
export const pausedMs = 400;

/** The primary store (`inner` wrapped to fail on demand) and the fallback. */
export let inner: Store<"sync">;
export let store: FaultyStore;
export let fallback: Store<"sync">;

export function setUp(): void {
  inner = simpleStore();
  store = new FaultyStore(inner);
  fallback = simpleStore();
}

/** Uses this store for all limiters that are made from now on. */
export function replaceStore(other: FaultyStore): void {
  store = other;
}

/** Gives each test its own stores and a manual clock. */
export function useFallback(): void {
  expectWarnings("FLOODGATE_STORE_DOWN", "FLOODGATE_STORE_BACK");
  beforeEach(() => {
    vi.useFakeTimers();
    vi.setSystemTime(startMs);
    setUp();
  });
  afterEach(async () => {
    // Nothing waits any more: the next test has another clock and other timers.
    if (vi.isFakeTimers()) await vi.advanceTimersByTimeAsync(2000);
    vi.useRealTimers();
  });
}

export function limiter(of: Policy = policy, processes = 1, name = "api"): Limiter<"async"> {
  return createLimiter({ name, policy: of, store, timeoutMs, onStoreError: { store: fallback, share: 1 / processes } });
}

export async function inTime<T>(answer: T | Promise<T>): Promise<T> {
  const [value] = await Promise.all([answer, vi.advanceTimersByTimeAsync(timeoutMs)]);
  return value;
}

/** Sends `count` requests in sequence while the store fails. */
export async function away(api: Limiter<"async">, requests: number, fault: Fault = "rejects"): Promise<Decision[]> {
  store.fault = fault;
  const decisions: Decision[] = [];
  for (let i = 0; i < requests; i++) decisions.push(await inTime(api.consume("k")));
  store.fault = undefined;
  return decisions;
}

export const allowed = (decisions: readonly Decision[]): number => decisions.filter((decision) => decision.allowed).length;

/** A key's usage in a store. */
export const used = (of: Store<"sync">, { limit }: Limiter, key = "k"): number => {
  const decision = of.peek(limit, key);
  return decision.limit - decision.remaining;
};
