import { type Check, type Decision, type Limit, type Store, wholeMsClock } from "@floodgate/core";

export function simpleStore(clock?: () => number): Store<"sync"> {
  const now = wholeMsClock("simpleStore", clock);
  const states = new Map<string, Float64Array>();
  const nameOf = (limit: Limit, key: string) => JSON.stringify([limit.name, limit.policy.stateKind, key]);

  function cellsOf(limit: Limit, name: string): Float64Array {
    const cells = states.get(name) ?? new Float64Array(3);
    const size = limit.algorithm.size(limit.policy, cells, 0);
    if (size <= cells.length) return cells;
    const larger = new Float64Array(2 * size);
    larger.set(cells);
    return larger;
  }

  function decide(limit: Limit, key: string, cost: number, nowMs: number, commit: boolean): Decision {
    const name = nameOf(limit, key);
    const cells = cellsOf(limit, name);
    const decision = limit.algorithm.decide(limit, cells, 0, nowMs, cost, commit);
    if (commit && cells.some((cell) => cell !== 0)) states.set(name, cells);
    return decision;
  }

  return {
    mode: "sync",
    consume: (limit, key, cost) => decide(limit, key, cost, now(), true),
    consumeAll(checks: readonly Check[]) {
      const nowMs = now();
      const asked = checks.map(({ limit, key, cost }) => decide(limit, key, cost, nowMs, false));
      const allowed = checks.every(({ shadow }, i) => shadow === true || asked[i]?.allowed === true);
      return checks.map(({ limit, key, cost, look }, i) => {
        const decision = asked[i] as Decision;
        return look !== true && (allowed || !decision.allowed) ? decide(limit, key, cost, nowMs, true) : decision;
      });
    },
    peek: (limit, key) => decide(limit, key, 1, now(), false),
    settle(limit, key, { atMs, cost: reserved }, cost) {
      const name = nameOf(limit, key);
      const cells = cellsOf(limit, name);
      const units = limit.algorithm.settle(limit.policy, cells, 0, now(), atMs, reserved, cost);
      if (units !== 0) states.set(name, cells);
      return units;
    },
    reset(limit, key) {
      states.delete(nameOf(limit, key));
    },
  };
}
