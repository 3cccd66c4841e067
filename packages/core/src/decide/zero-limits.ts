import { type BlockKind, type Charge, emptyView } from "../algorithms/algorithm.js";
import { copyWith, MadeDecision } from "../algorithms/decision.js";
import { shareOf } from "../algorithms/registry.js";
import { andThen, type Promised } from "../support/promises.js";
import { type Check, type CombinedDecision, combine, createLimit, type Decision, type Limit } from "./decision.js";
import type { Guard } from "./guard.js";
import type { Answer, Blocked, Decided, Inspection, Mode } from "./store.js";

/** Whether a limit is 0, a kill switch: it rejects every request without asking the store. */
export function isZero({ policy }: Limit): boolean {
  return policy.quota === 0;
}

/** An enforced limit of 0 rejects a request by itself. Returns the checks that decide: these limits only, or all checks. */
export function decisiveChecks<C extends Check>(checks: readonly C[]): readonly C[] {
  return checks.some(({ limit, shadow }) => isZero(limit) && shadow !== true) ? checks.filter(({ limit }) => isZero(limit)) : checks;
}

/** A guard for limits that may be 0: they are decided here, and the store never sees them. */
export class ZeroLimitGuard<M extends Mode> implements Guard<M> {
  readonly mode: M;
  readonly scope: object;
  readonly dataId: string | undefined;
  readonly timeoutMs: number;
  readonly fallback: Guard["fallback"];
  readonly #guard: Guard<M>;

  constructor(guard: Guard<M>) {
    this.mode = guard.mode;
    this.scope = guard.scope;
    this.dataId = guard.dataId;
    this.timeoutMs = guard.timeoutMs;
    this.fallback = guard.fallback;
    this.#guard = guard;
  }

  consume(limit: Limit, key: string, cost: number): Decided<Decision, M> {
    return isZero(limit) ? zeroDecision(limit, cost) : this.#guard.consume(limit, key, cost);
  }

  /** An enforced limit of 0 rejects the request, so the others are then decided without being charged. */
  decide(checks: readonly Check[]): Decided<CombinedDecision, M> {
    if (!checks.some(({ limit }) => isZero(limit))) return this.#guard.decide(checks);
    const isRejected = checks.some(({ limit, shadow }) => isZero(limit) && shadow !== true);
    const others = checks.filter(({ limit }) => !isZero(limit)).map((check) => (isRejected ? { ...check, dryRun: true } : check));
    const decided = others.length > 0 ? this.#guard.decide(others) : undefined;
    return andThen<CombinedDecision | undefined, CombinedDecision>(decided, (made) => {
      let next = 0;
      const all = checks.map(({ limit, cost }) => (isZero(limit) ? zeroDecision(limit, cost) : (made?.all[next++] as Decision)));
      return combine(checks, all);
    }) as Decided<CombinedDecision, M>;
  }

  peek(limit: Limit, key: string): Decided<Decision, M> {
    return isZero(limit) ? zeroDecision(limit, 1) : this.#guard.peek(limit, key);
  }

  /** A limit of 0 has no state. But a block belongs to the name and key, so the store is asked with a limit of 1, which a share has at least. */
  keyState(limit: Limit, key: string): Answer<Inspection, M> {
    if (!isZero(limit)) return this.#guard.keyState(limit, key);
    const seen = this.#guard.keyState(createLimit(limit.name, shareOf(limit.policy, 1)), key);
    return andThen<Inspection, Inspection>(seen, (inspection) => {
      return { ...inspection, decision: copyWith(zeroDecision(limit, 1), { atMs: inspection.atMs }), state: emptyView };
    }) as Answer<Inspection, M>;
  }

  settle(limit: Limit, key: string, charge: Charge, cost: number): Promised<number> {
    return this.#guard.settle(limit, key, charge, cost);
  }

  /** A limit of 0 has no state. */
  charge(limit: Limit, key: string, cost: number): Decided<number, M> {
    return isZero(limit) ? 0 : this.#guard.charge(limit, key, cost);
  }

  reset(limit: Limit, key: string): Answer<void, M> {
    return this.#guard.reset(limit, key);
  }

  block(name: string, key: string, forMs: number, kind: BlockKind): Answer<Blocked, M> {
    return this.#guard.block(name, key, forMs, kind);
  }

  unblock(name: string, key: string): Answer<void, M> {
    return this.#guard.unblock(name, key);
  }
}

function zeroDecision(limit: Limit, cost: number): Decision {
  const never = Number.POSITIVE_INFINITY;
  return new MadeDecision(limit, cost, {
    allowed: false,
    remaining: 0,
    retryAfterMs: never,
    resetAfterMs: 0,
    delayMs: 0,
    atMs: Date.now(),
  });
}
