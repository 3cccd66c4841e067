import { afterEach, beforeEach, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import {
  createLimiter,
  type Decision,
  type FloodgateEvent,
  fixedWindow,
  type Limiter,
  type LimiterOptions,
  type Policy,
  type Store,
} from "../../src/index.js";
import { type Fault, FaultyStore } from "../faulty-store.js";

export const policy: Policy = fixedWindow({ limit: 5, window: "1h" });
export const timeoutMs = 50;
export const faults: Fault[] = ["rejects", "throws", "never answers", "answers late", "fails late"];
export const choices = ["allow", "deny", "fallback"] as const;

export let store: FaultyStore;
export let events: FloodgateEvent[];

/** Gives each test its own store and a manual clock. */
export function useStore(): void {
  beforeEach(() => {
    vi.useFakeTimers();
    store = new FaultyStore(simpleStore());
    events = [];
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });
}

export function limiter(options: Partial<LimiterOptions<"async">> = {}): Limiter<"async"> {
  return createLimiter({
    name: "api",
    policy,
    store,
    timeoutMs,
    onEvent: (event) => event.type !== "request" && events.push(event),
    ...options,
  });
}

export const onStoreError = (choice: (typeof choices)[number]): "allow" | "deny" | Store<"sync"> =>
  choice === "fallback" ? simpleStore() : choice;

/** The result of a call after its timeout. */
export async function inTime<T>(answer: T | Promise<T>): Promise<T> {
  const [value] = await Promise.all([answer, vi.advanceTimersByTimeAsync(timeoutMs)]);
  return value;
}

/** Sends `count` requests in sequence. */
export async function consume(of: Limiter<"async">, count: number): Promise<Decision[]> {
  const decisions: Decision[] = [];
  for (let i = 0; i < count; i++) decisions.push(await inTime(of.consume("k")));
  return decisions;
}

export const kinds = (): string[] => events.map((event) => (event.type === "breaker" ? event.state : event.type));
