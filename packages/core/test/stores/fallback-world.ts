import { afterEach, beforeEach, vi } from "vitest";
import { type Fault, FaultyStore } from "../../../conformance/src/faulty-store.js";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { createLimiter, type Decision, fixedWindow, type Limiter, type Policy, type Store } from "../../src/index.js";

export const policy = fixedWindow({ limit: 12, window: "1h" });
export const timeoutMs = 50;
export const startMs = 1_789_948_800_000;
/** A machine that is busy with other tests may take its time. */
export const patienceMs = 60_000;
/** Longer than the breaker pauses. */
export const pausedMs = 400;

/** What stands where the limiter asks, and what decides in its stead. */
export let inner: Store<"sync">;
export let store: FaultyStore;
export let fallback: Store<"sync">;

export function setUp(): void {
  inner = simpleStore();
  store = new FaultyStore(inner);
  fallback = simpleStore();
}

/** Has the limiters to come ask this one. */
export function replaceStore(other: FaultyStore): void {
  store = other;
}

/** Each case has its own stores, and a clock that stands until it is moved. */
export function useFallback(): void {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.setSystemTime(startMs);
    setUp();
  });
  afterEach(() => {
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

/** The store fails for so many requests, one after the other. */
export async function away(api: Limiter<"async">, requests: number, fault: Fault = "rejects"): Promise<Decision[]> {
  store.fault = fault;
  const decisions: Decision[] = [];
  for (let i = 0; i < requests; i++) decisions.push(await inTime(api.consume("k")));
  store.fault = undefined;
  return decisions;
}

export const allowed = (decisions: readonly Decision[]): number => decisions.filter((decision) => decision.allowed).length;

/** What a key has used in a store. */
export const used = (of: Store<"sync">, { limit }: Limiter, key = "k"): number => {
  const decision = of.peek(limit, key);
  return decision.limit - decision.remaining;
};
