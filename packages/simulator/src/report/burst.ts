import type { Policy } from "@floodgate/core";
import { describePolicy } from "@floodgate/core/rules";
import { KeyStates } from "../measure/key-states.js";
import { algorithmNames, isWindow, optionsFor, policyOrNone, policyWords } from "../policies/options.js";
import type { Burst, Verdict } from "./contract.js";

/** How many intervals a burst is shown in. */
const steps = 150;
const maxListed = 400;

/** Decides the requests of one client around its busiest moment by all algorithms, with the numbers of one policy. */
export class BurstWatch {
  readonly key: string;
  readonly #startMs: number;
  readonly #endMs: number;
  readonly #stepMs: number;
  readonly #requests: [number, number][] = [];
  #count = 0;
  readonly #judges: ReturnType<typeof judgeOf>[];

  /** @param atMs when the client had used most of the limit. */
  constructor(policy: Policy, key: string, atMs: number) {
    this.key = key;
    const { spanMs } = policy;
    this.#stepMs = Math.max(1, Math.ceil((2 * spanMs) / steps));
    this.#startMs = atMs - Math.floor((steps * this.#stepMs * 3) / 4);
    this.#endMs = this.#startMs + steps * this.#stepMs;
    this.#judges = equivalents(policy).map((each) => judgeOf(each, each === policy));
  }

  see(nowMs: number, cost: number): void {
    if (nowMs < this.#startMs || nowMs >= this.#endMs) return;
    const step = Math.floor((nowMs - this.#startMs) / this.#stepMs);
    for (const { state, verdict } of this.#judges) {
      const { allowed, delayMs } = state.decide(0, nowMs, cost);
      const counts = allowed ? (delayMs > 0 ? verdict.delayed : verdict.allowed) : verdict.limited;
      (counts[step] as number)++;
      if (allowed) verdict.longestDelayMs = Math.max(verdict.longestDelayMs, delayMs);
    }
    this.#count++;
    if (this.#requests.length < maxListed) this.#requests.push([nowMs - this.#startMs, cost]);
  }

  result(shown: (key: string) => string): Burst {
    return {
      client: shown(this.key),
      startMs: this.#startMs,
      stepMs: this.#stepMs,
      steps,
      requests: this.#requests,
      count: this.#count,
      verdicts: this.#judges.map(({ verdict }) => verdict),
    };
  }
}

/** A policy that decides the requests, and what it did. */
function judgeOf(policy: Policy, isOwn: boolean) {
  const none = (): number[] => new Array<number>(steps).fill(0);
  const did = { allowed: none(), delayed: none(), limited: none(), longestDelayMs: 0 };
  const words = { algorithm: policy.algorithm, numbers: describePolicy(policy), policy: policyWords(policy) };
  return { state: new KeyStates(policy), verdict: { ...did, ...words, isOwn } satisfies Verdict };
}

/** All algorithms of `algorithmNames` with the same limit at the same rate; the policy itself among them. */
function equivalents(policy: Policy): Policy[] {
  const { quota, spanMs, algorithm } = policy;
  if (algorithm === "concurrency") return [policy];
  const [units, everyMs] =
    algorithm === "token-bucket"
      ? [policy.refill, policy.everyMs]
      : algorithm === "leaky-bucket"
        ? [policy.leak, policy.everyMs]
        : [policy.limit, algorithm === "calendar-window" ? spanMs : policy.windowMs];
  return algorithmNames.flatMap((name) => {
    if (name === algorithm) return [policy];
    const window = `${isWindow(name) ? spanMs : everyMs}ms`;
    return policyOrNone({ algorithm: name, ...optionsFor(name, quota, units, window) }) ?? [];
  });
}
