import {
  beganByCharge,
  beganState,
  blockCells,
  blockedDecision,
  blockIn,
  type Charge,
  type Decision,
  decideAll,
  inState,
  inspectIn,
  keyBlockIn,
  type Limit,
  liftBanIn,
  renewIn,
  type Store,
  settleIn,
  wholeMsClock,
} from "@floodgate/core/store";

/** The numbers of a key; forgotten with the state, its own number never comes again. */
interface State {
  readonly number: number;
  readonly cells: Float64Array;
}

export function simpleStore(clock?: () => number): Store<"sync"> {
  const now = wholeMsClock("simpleStore", clock);
  const states = new Map<string, State>();
  let made = 0;
  const blocks = new Map<string, Float64Array>();
  const nameOf = (limit: Limit, key: string) => JSON.stringify([limit.name, limit.policy.stateKind, key]);
  const blockOf = (name: string, key: string) => JSON.stringify([name, key]);

  function stateOf(limit: Limit, name: string): State {
    const state = states.get(name) ?? { number: ++made, cells: new Float64Array(3) };
    const size = limit.algorithm.size(limit.policy, state.cells, 0);
    if (size <= state.cells.length) return state;
    const larger = new Float64Array(2 * size);
    larger.set(state.cells);
    return { number: state.number, cells: larger };
  }

  function keep(name: string, state: State): void {
    if (state.cells.some((cell) => cell !== 0)) states.set(name, state);
    else states.delete(name);
  }

  function decide(limit: Limit, key: string, cost: number, nowMs: number, commit: boolean): Decision {
    const block = blocks.get(blockOf(limit.name, key));
    const blocked = block && keyBlockIn(block, 0, nowMs);
    return blocked === undefined
      ? decideUnblocked(limit, key, cost, nowMs, commit)
      : blockedDecision(decideUnblocked(limit, key, cost, nowMs, false), blocked, nowMs);
  }

  function decideUnblocked(limit: Limit, key: string, cost: number, nowMs: number, commit: boolean, renewed?: Charge): Decision {
    const name = nameOf(limit, key);
    let state = stateOf(limit, name);
    const decision =
      renewed === undefined
        ? limit.algorithm.decide(limit, state.cells, 0, nowMs, cost, commit)
        : renewIn(limit, state.cells, 0, nowMs, renewed, states.get(name)?.number);
    if (commit && beganState(limit, state.cells, 0, nowMs, decision)) state = { number: ++made, cells: state.cells };
    if (commit) keep(name, state);
    return inState(decision, state.number);
  }

  return {
    mode: "sync",
    consume: (limit, key, cost) => decide(limit, key, cost, now(), true),
    consumeAll: (checks) => decideAll(checks, now(), decide),
    peek: (limit, key) => decide(limit, key, 1, now(), false),
    settle(limit, key, charge, cost) {
      const name = nameOf(limit, key);
      const nowMs = now();
      let state = stateOf(limit, name);
      const units = settleIn(limit, state.cells, 0, nowMs, charge, cost, states.get(name)?.number);
      if (beganByCharge(limit, state.cells, 0, nowMs, charge, cost, units)) state = { number: ++made, cells: state.cells };
      keep(name, state);
      return units;
    },
    renew: (limit, key, charge) => decideUnblocked(limit, key, charge.cost, now(), true, charge),
    reset(limit, key) {
      states.delete(nameOf(limit, key));
      const block = blocks.get(blockOf(limit.name, key));
      if (block !== undefined) liftBanIn(block, 0);
    },
    block(name, key, forMs, kind) {
      const block = blocks.get(blockOf(name, key)) ?? new Float64Array(blockCells);
      blocks.set(blockOf(name, key), block);
      return blockIn(block, 0, now(), forMs, kind);
    },
    unblock(name, key) {
      blocks.delete(blockOf(name, key));
    },
    keyState(limit, key) {
      const { cells } = stateOf(limit, nameOf(limit, key));
      return inspectIn(limit, cells, 0, now(), blocks.get(blockOf(limit.name, key)));
    },
  };
}
