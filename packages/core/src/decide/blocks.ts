import { type Algorithm, type BlockKind, type Cells, emptyView, type KeyBlock, type PolicyBase } from "../algorithms/algorithm.js";
import { MadeDecision } from "../algorithms/decision.js";
import type { Policy } from "../algorithms/registry.js";
import { maxDurationMs } from "../support/duration.js";
import type { Decision, Limit } from "./decision.js";
import type { Blocked, Until } from "./store.js";

class BlockedDecision extends MadeDecision<Policy> {
  override readonly blocked: KeyBlock;
  readonly #unblocked: Decision;
  readonly #nowMs: number;

  static blockOf(made: Decision): { readonly unblocked: Decision; readonly nowMs: number } | undefined {
    return #unblocked in made ? { unblocked: made.#unblocked, nowMs: made.#nowMs } : undefined;
  }

  constructor(unblocked: Decision, blocked: KeyBlock, nowMs: number) {
    const { limit, cost, degraded, atMs } = unblocked;
    const leftMs = blocked.untilMs - nowMs;
    const retryAfterMs = Math.max(unblocked.retryAfterMs, leftMs);
    const resetAfterMs = Math.max(unblocked.resetAfterMs, leftMs);
    super(unblocked, cost, { allowed: false, remaining: 0, retryAfterMs, resetAfterMs, delayMs: 0, atMs }, limit, degraded);
    this.blocked = blocked;
    this.#unblocked = unblocked;
    this.#nowMs = nowMs;
  }
}

/**
 * For stores: the decision for a blocked key.
 * @param unblocked what the limit alone says, decided without charging anything.
 * @param blocked why the key is turned away, and until when.
 */
export function blockedDecision(unblocked: Decision, blocked: KeyBlock, nowMs: number): Decision {
  return new BlockedDecision(unblocked, blocked, nowMs);
}

/** What the limit alone says of a blocked key, and the store's time; undefined if the key is not blocked. */
export const blockOf: (made: Decision) => { readonly unblocked: Decision; readonly nowMs: number } | undefined = BlockedDecision.blockOf;

/** Where the start and the end of the block and of the ban are stored. Zeros mean that the key is not blocked or banned. */
const BLOCK = 0;
const BAN = 2;

/** For stores: how many cells hold the block and the ban of a name and key. */
export const blockCells = 4;

/** For stores: begins a ban, unless one is in force, or a block in place of an earlier one. */
export function blockIn(cells: Cells, at: number, nowMs: number, forMs: number, kind: BlockKind): Blocked {
  const from = at + (kind === "ban" ? BAN : BLOCK);
  const leftMs = kind === "ban" ? leftIn(cells, from, nowMs) : 0;
  if (leftMs > 0) return { leftMs, begun: false };
  cells[from] = nowMs;
  cells[from + 1] = nowMs + forMs;
  return { leftMs: forMs, begun: true };
}

/** For stores: lifts the ban. A block stays. */
export function liftBanIn(cells: Cells, at: number): void {
  cells[at + BAN] = 0;
  cells[at + BAN + 1] = 0;
}

/** For stores: the block or the ban that turns the key away, whichever lasts longer. Undefined if the key is free. */
export function keyBlockIn(cells: Cells, at: number, nowMs: number): KeyBlock | undefined {
  const blockMs = leftIn(cells, at + BLOCK, nowMs);
  const banMs = leftIn(cells, at + BAN, nowMs);
  if (blockMs === 0 && banMs === 0) return undefined;
  return banMs > blockMs ? { kind: "ban", untilMs: nowMs + banMs } : { kind: "block", untilMs: nowMs + blockMs };
}

/** The block and the ban of a key that are in force. */
export function blocksIn(cells: Cells, at: number, nowMs: number): { readonly block: Until | undefined; readonly ban: Until | undefined } {
  const untilOf = (from: number): Until | undefined => {
    const leftMs = leftIn(cells, from, nowMs);
    return leftMs > 0 ? { untilMs: nowMs + leftMs } : undefined;
  };
  return { block: untilOf(at + BLOCK), ban: untilOf(at + BAN) };
}

/**
 * The time left of a block or ban; 0 if it is longer than any duration, or began further ahead of the clock than its own length: then the
 * clock was wrong.
 */
function leftIn(cells: Cells, from: number, nowMs: number): number {
  const startMs = cells[from] as number;
  const endMs = cells[from + 1] as number;
  const lengthMs = endMs - startMs;
  return endMs <= nowMs || lengthMs > maxDurationMs || startMs - nowMs > lengthMs ? 0 : endMs - nowMs;
}

/**
 * For stores: a full store evicts the blocked key nearest its reset. Clients can get themselves banned under many addresses, so a block by
 * hand has a reset after this time, and so after those of all bans.
 */
export const outlastsMs: number = 2 ** 51;

const blockAlgorithm: Algorithm<PolicyBase> = {
  name: "blocks",
  parameters: [],
  cells: ["blockStart", "blockEnd", "banStart", "banEnd"],
  size: () => blockCells,
  decide(limit, cells, at, nowMs, cost) {
    const leftMs = (keyBlockIn(cells, at, nowMs)?.untilMs ?? nowMs) - nowMs;
    const resetAfterMs = leftIn(cells, at + BLOCK, nowMs) > 0 ? leftMs + outlastsMs : leftMs;
    const allowed = leftMs === 0;
    return new MadeDecision(limit, cost, {
      allowed,
      remaining: allowed ? 1 : 0,
      retryAfterMs: leftMs,
      resetAfterMs,
      delayMs: 0,
      atMs: nowMs,
    });
  },
  settle: () => 0,
  view: () => emptyView,
};

/** For stores: the limit under which a store may keep the blocks of a name beside its other states. It is never charged. */
export function blocksOf(name: string): Limit {
  const policy = Object.freeze({ algorithm: "blocks", quota: 1, spanMs: 1, stateKind: "blocks" });
  return Object.freeze({ name, policy, algorithm: blockAlgorithm }) as unknown as Limit;
}
