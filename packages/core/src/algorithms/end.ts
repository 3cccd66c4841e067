import { deepest } from "./debt.js";

/*
 * When a bucket's state ends: from then on it counts as none under every policy, and a store may forget it. A state that ends just
 * when a policy says is that policy's `own`, and ends when it says of what is left; any other has been charged by others too.
 */

/**
 * The end once a policy has charged the state: where others have too, when the last of them says, for until then it remembers what
 * they took. That is never just when this one says, so that nothing that it gives back can bring it nearer.
 */
export function endOnceCharged(own: boolean, ownEndMs: number, storedEndMs: number): number {
  return own ? ownEndMs : Math.max(ownEndMs + 1, storedEndMs);
}

/**
 * The end once a charge has been settled: another's is put off by the time that the units owed take at this policy's pace, and stays where
 * units are given back, for another's bucket may be far from full.
 */
export function endOnceSettled(own: boolean, ownEndMs: number, storedEndMs: number, laterMs: number, nowMs: number): number {
  return own ? ownEndMs : Math.min(storedEndMs + laterMs, nowMs + deepest);
}
