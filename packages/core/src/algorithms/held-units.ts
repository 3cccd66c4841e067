import type { Cells, StateView } from "./algorithm.js";

/**
 * A list of held units in cells: how many entries there are, the units of all of them, then the entries in order of their ends, each an end
 * and its units. Units with the same end are one entry: nobody can tell them apart, so they need no ids.
 */
export const heldCells = ["entries", "held"] as const;
const COUNT = 0;
const HELD = 1;
export const HEAD = 2;

/** The most entries of a list, and the highest limit of `concurrency`. */
export const maxHeld = 10_000;

export function countOf(cells: Cells, at: number): number {
  return cells[at + COUNT] as number;
}

/** The units of all entries, also of those that have ended. */
function unitsOf(cells: Cells, at: number): number {
  return cells[at + HELD] as number;
}

/** The units of the entries from `first` on. */
export function unitsFrom(cells: Cells, at: number, first: number): number {
  return unitsOf(cells, at) - unitsBefore(cells, at, first);
}

/** When the units of an entry come back, in milliseconds since the epoch. */
export function endOf(cells: Cells, at: number, entry: number): number {
  return cells[at + HEAD + 2 * entry] as number;
}

function unitsIn(cells: Cells, at: number, entry: number): number {
  return cells[at + HEAD + 2 * entry + 1] as number;
}

/**
 * The time that counts, in a list whose units are held for `longestMs` at most: a time before the newest entry was added counts as that one's.
 * Undefined if the list counts for nothing: it is empty, or a clock that was wrong has added to it.
 */
export function timeOf(cells: Cells, at: number, nowMs: number, longestMs: number): number | undefined {
  const count = countOf(cells, at);
  if (count === 0) return undefined;
  const newestMs = endOf(cells, at, count - 1) - longestMs;
  return newestMs - nowMs > longestMs ? undefined : Math.max(nowMs, newestMs);
}

/** How many entries have ended at `atMs`, the time of the list: all if it counts for nothing. They are the first ones. */
export function endedAt(cells: Cells, at: number, atMs: number | undefined): number {
  const count = countOf(cells, at);
  if (atMs === undefined) return count;
  let ended = 0;
  while (ended < count && endOf(cells, at, ended) <= atMs) ended++;
  return ended;
}

function unitsBefore(cells: Cells, at: number, count: number): number {
  let units = 0;
  for (let i = 0; i < count; i++) units += unitsIn(cells, at, i);
  return units;
}

/** The first entry from `from` on with which at least `units` units have come back. */
export function entryThatFrees(cells: Cells, at: number, from: number, units: number): number {
  let entry = from;
  for (let left = units - unitsIn(cells, at, entry); left > 0; left -= unitsIn(cells, at, entry)) entry++;
  return entry;
}

/** Removes the first entries. @param behind the cells after the list that move with its end. */
export function dropFirst(cells: Cells, at: number, dropped: number, behind = 0): void {
  if (dropped === 0) return;
  cells[at + HELD] = unitsOf(cells, at) - unitsBefore(cells, at, dropped);
  remove(cells, at, 0, dropped, behind);
}

export function hold(cells: Cells, at: number, endMs: number, units: number, behind = 0): void {
  const count = countOf(cells, at);
  let entry = count;
  while (entry > 0 && endOf(cells, at, entry - 1) >= endMs) entry--;
  const place = at + HEAD + 2 * entry;
  cells[at + HELD] = unitsOf(cells, at) + units;
  if (entry < count && cells[place] === endMs) {
    (cells[place + 1] as number) += units;
    return;
  }
  cells.copyWithin(place + 2, place, at + HEAD + 2 * count + behind);
  cells[place] = endMs;
  cells[place + 1] = units;
  cells[at + COUNT] = count + 1;
}

/**
 * Stops holding units that end at `endMs`, if they are still held at `atMs`, the time of the list. Returns how many of them there were. Entries
 * that have ended stay as long as others are held: they count again if the clock steps back.
 */
export function release(cells: Cells, at: number, atMs: number | undefined, endMs: number, units: number, behind = 0): number {
  if (atMs === undefined || endMs <= atMs) return 0;
  const count = countOf(cells, at);
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (endOf(cells, at, middle) < endMs) low = middle + 1;
    else high = middle;
  }
  if (low === count || endOf(cells, at, low) !== endMs) return 0;
  const place = at + HEAD + 2 * low + 1;
  const released = Math.min(units, cells[place] as number);
  cells[at + HELD] = unitsOf(cells, at) - released;
  (cells[place] as number) -= released;
  if (cells[place] === 0) {
    remove(cells, at, low, 1, behind);
    // A list of nothing but units that have ended is no state.
    if (endedAt(cells, at, atMs) === count - 1) dropFirst(cells, at, count - 1, behind);
  }
  return released;
}

function remove(cells: Cells, at: number, entry: number, removed: number, behind: number): void {
  const count = countOf(cells, at);
  const place = at + HEAD + 2 * entry;
  const end = at + HEAD + 2 * count + behind;
  cells.copyWithin(place, place + 2 * removed, end);
  cells.fill(0, end - 2 * removed, end);
  cells[at + COUNT] = count - removed;
}

/** What the entries from `from` on hold beside what is `used`. */
export function viewOfHeld(cells: Cells, at: number, from: number, limit: number, used: StateView): StateView {
  const held = Array.from({ length: countOf(cells, at) - from }, (_, i) => ({
    untilMs: endOf(cells, at, from + i),
    units: unitsIn(cells, at, from + i),
  }));
  return held.length === 0 ? used : { kind: "held", limit, held, total: unitsFrom(cells, at, from), used };
}
