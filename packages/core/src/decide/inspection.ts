import type { Cells, StateView } from "../algorithms/algorithm.js";
import { chargeable } from "../algorithms/decision.js";
import type { Policy } from "../algorithms/registry.js";
import { blockCells, blockedDecision, blocksIn, keyBlockIn } from "./blocks.js";
import type { Decision, Limit } from "./decision.js";
import type { Inspection } from "./store.js";

/** What a limiter knows of a key: its state under each policy, and its block and ban. */
export interface KeyState extends Pick<Inspection, "atMs" | "block" | "ban"> {
  /** The decision that a request of cost 1 would get under the first of the policies, as from `peek`. */
  readonly decision: Decision;
  /**
   * One for each policy that may count the key: the limiter's or rule's own, then one for each plan. Plans with the same times share one count,
   * so each of them shows that count as it sees it.
   */
  readonly states: readonly [PolicyState, ...PolicyState[]];
}

/** The state of a key under one policy. */
export interface PolicyState {
  /** The name of the plan whose policy this is; undefined for the limiter's or rule's own, and for one that a policy function answered. */
  readonly plan: string | undefined;
  readonly policy: Policy;
  /** The decision that a request of cost 1 would get under this policy. */
  readonly decision: Decision;
  readonly state: StateView;
}

const noBlocks: Cells = new Float64Array(blockCells);

/**
 * For stores: implements `Store.keyState` on cells.
 * @param cells the state of the key; zeros if it has none, `algorithm.size` of them.
 * @param blocks the cells of the block of the name and key; default: no block.
 */
export function inspectIn(limit: Limit, cells: Cells, at: number, nowMs: number, blocks: Cells = noBlocks, blocksAt = 0): Inspection {
  const unblocked = limit.algorithm.decide(limit, cells, at, nowMs, 1, false);
  const blocked = keyBlockIn(blocks, blocksAt, nowMs);
  return {
    atMs: nowMs,
    decision: blocked === undefined ? unblocked : blockedDecision(unblocked, blocked, nowMs),
    state: limit.algorithm.view(limit.policy, cells, at, nowMs),
    ...blocksIn(blocks, blocksAt, nowMs),
  };
}

/** One or more inspections of a key, of the limiter's own policy and of its plans, as a limiter shows them. */
export function keyStateOf(seen: readonly (readonly [plan: string | undefined, Inspection])[]): KeyState {
  const states = seen.map(([plan, { decision, state }]): PolicyState => {
    return { plan, policy: decision.policy, decision: chargeable(decision), state };
  }) as readonly PolicyState[] as KeyState["states"];
  const { atMs, block, ban } = (seen[0] as (typeof seen)[0])[1];
  return { atMs, decision: states[0].decision, states, block, ban };
}
