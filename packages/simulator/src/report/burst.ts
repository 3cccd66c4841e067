import { FloodgateError, type Policy } from "@floodgate/core";
import { type algorithms, describePolicy, toPolicy } from "@floodgate/core/rules";
import { algorithmOf, type Cells } from "@floodgate/core/store";
import type { Burst } from "./contract.js";
import { optionsOf } from "./numbers.js";

/** How many intervals a burst is shown in. */
const steps = 150;
/** The most requests that are listed one by one. */
const mostListed = 400;

type AlgorithmName = keyof typeof algorithms;

/** Decides the requests of one client around its busiest moment by all algorithms, with the numbers of one policy. */
export class BurstWatch {
  readonly key: string;
  readonly #startMs: number;
  readonly #endMs: number;
  readonly #stepMs: number;
  readonly #requests: [number, number][] = [];
  #count = 0;
  readonly #judges: Judge[];

  /** @param atMs when the client had used most of the limit. */
  constructor(policy: Policy, key: string, atMs: number) {
    this.key = key;
    const { spanMs } = policy;
    this.#stepMs = Math.max(1, Math.ceil((2 * spanMs) / steps));
    this.#startMs = atMs - Math.floor((steps * this.#stepMs * 3) / 4);
    this.#endMs = this.#startMs + steps * this.#stepMs;
    this.#judges = equivalents(policy).map((each) => new Judge(each, each === policy));
  }

  see(nowMs: number, cost: number): void {
    if (nowMs < this.#startMs || nowMs >= this.#endMs) return;
    const step = Math.floor((nowMs - this.#startMs) / this.#stepMs);
    for (const judge of this.#judges) judge.decide(nowMs, cost, step);
    this.#count++;
    if (this.#requests.length < mostListed) this.#requests.push([nowMs - this.#startMs, cost]);
  }

  result(shown: (key: string) => string): Burst {
    return {
      client: shown(this.key),
      startMs: this.#startMs,
      stepMs: this.#stepMs,
      steps,
      requests: this.#requests,
      count: this.#count,
      verdicts: this.#judges.map(({ policy, isOwn, allowed, delayed, limited, longestDelayMs }) => ({
        algorithm: policy.algorithm,
        numbers: describePolicy(policy),
        policy: optionsOf(policy),
        isOwn,
        allowed,
        delayed,
        limited,
        longestDelayMs,
      })),
    };
  }
}

class Judge {
  readonly policy: Policy;
  readonly isOwn: boolean;
  readonly allowed: number[] = new Array<number>(steps).fill(0);
  readonly delayed: number[] = new Array<number>(steps).fill(0);
  readonly limited: number[] = new Array<number>(steps).fill(0);
  longestDelayMs = 0;
  #cells: Cells = new Float64Array(64);

  constructor(policy: Policy, isOwn: boolean) {
    this.policy = policy;
    this.isOwn = isOwn;
  }

  decide(nowMs: number, cost: number, step: number): void {
    const algorithm = algorithmOf(this.policy);
    const size = algorithm.size(this.policy, this.#cells, 0);
    if (size > this.#cells.length) {
      const larger = new Float64Array(2 * size);
      larger.set(this.#cells);
      this.#cells = larger;
    }
    const { allowed, delayMs } = algorithm.decide({ name: "burst", policy: this.policy }, this.#cells, 0, nowMs, cost, true);
    const counts = allowed ? (delayMs > 0 ? this.delayed : this.allowed) : this.limited;
    (counts[step] as number)++;
    if (allowed && delayMs > this.longestDelayMs) this.longestDelayMs = delayMs;
  }
}

/** All six algorithms with the same limit at the same rate; the policy itself among them. */
function equivalents(policy: Policy): Policy[] {
  const { quota, spanMs } = policy;
  const [units, everyMs] = rateOf(policy);
  const window = `${spanMs}ms`;
  const every = `${everyMs}ms`;
  const options: Record<AlgorithmName, object> = {
    "fixed-window": { limit: quota, window },
    "sliding-window-counter": { limit: quota, window },
    "sliding-window-log": { limit: quota, window },
    "token-bucket": { capacity: quota, refill: units, every },
    "leaky-bucket": { capacity: quota, leak: units, every },
    gcra: { limit: units, window: every, burst: quota },
  };
  return (Object.keys(options) as AlgorithmName[]).flatMap((algorithm) => {
    if (algorithm === policy.algorithm) return [policy];
    try {
      return [toPolicy("report", { algorithm, ...options[algorithm] })];
    } catch (error) {
      // Numbers that another algorithm cannot have.
      if (error instanceof FloodgateError) return [];
      throw error;
    }
  });
}

function rateOf(policy: Policy): [units: number, everyMs: number] {
  switch (policy.algorithm) {
    case "token-bucket":
      return [policy.refill, policy.everyMs];
    case "leaky-bucket":
      return [policy.leak, policy.everyMs];
    case "gcra":
      return [policy.limit, policy.windowMs];
    default:
      return [policy.limit, policy.windowMs];
  }
}
