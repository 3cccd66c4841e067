import { type FloodgateEvent, fixedWindow, type Policy } from "@floodgate/core";
import { type MemoryStore, memoryStore } from "../src/index.js";

export const startMs = 1_789_948_800_000;

/** A memory store with its events and its clock. */
export interface Setting {
  readonly store: MemoryStore;
  readonly events: FloodgateEvent[];
  readonly clock: { nowMs: number };
}

export function storeOf(maxKeys: number): Setting {
  const clock = { nowMs: startMs };
  const events: FloodgateEvent[] = [];
  const store = memoryStore({ maxKeys, clock: () => clock.nowMs, onEvent: (event) => events.push(event) });
  return { store, events, clock };
}

export function perMinute(limit: number): Policy {
  return fixedWindow({ limit, window: "1m" });
}
