import { type Check, type Decision, type Limit, type Store, wholeMsClock } from "@floodgate/core";

export function simpleStore(clock?: () => number): Store<"sync"> {
  const now = wholeMsClock("simpleStore", clock);
  const states = new Map<string, Float64Array>();
  const nameOf = (limit: Limit, key: string) => JSON.stringify([limit.name, limit.policy.stateKind, key]);

  function decide(limit: Limit, key: string, cost: number, nowMs: number, commit: boolean): Decision {
    const name = nameOf(limit, key);
    let cells = states.get(name) ?? new Float64Array(3);
    const size = limit.algorithm.size(limit.policy, cells, 0);
    if (size > cells.length) {
      const larger = new Float64Array(2 * size);
      larger.set(cells);
      cells = larger;
    }
    const decision = limit.algorithm.decide(limit, cells, 0, nowMs, cost, commit);
    if (commit && cells.some((cell) => cell !== 0)) states.set(name, cells);
    return decision;
  }

  return {
    mode: "sync",
    consume: (limit, key, cost) => decide(limit, key, cost, now(), true),
    consumeAll(checks: readonly Check[]) {
      const nowMs = now();
      const looks = checks.map(({ limit, key, cost }) => decide(limit, key, cost, nowMs, false));
      const allowed = checks.every(({ shadow }, i) => shadow === true || looks[i]?.allowed === true);
      return checks.map(({ limit, key, cost }, i) => {
        const look = looks[i] as Decision;
        return allowed || !look.allowed ? decide(limit, key, cost, nowMs, true) : look;
      });
    },
    peek: (limit, key) => decide(limit, key, 1, now(), false),
    refund(limit, key, { atMs, cost }) {
      const cells = states.get(nameOf(limit, key));
      return cells === undefined ? 0 : limit.algorithm.refund(limit.policy, cells, 0, now(), atMs, cost);
    },
    reset(limit, key) {
      states.delete(nameOf(limit, key));
    },
  };
}
