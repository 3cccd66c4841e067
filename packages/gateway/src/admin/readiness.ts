import { answers } from "../service/redis.js";
import type { Service } from "../service/service.js";

/** Whether a service should get requests. */
export interface Readiness {
  readonly ready: boolean;
  /** Why it should not. Empty if it is ready. */
  readonly reasons: readonly string[];
  /** What is wrong although it is ready. */
  readonly notes: readonly string[];
}

/** How long Redis may take to answer: longer than a decision, because a slow answer is no reason to take a service out. */
const answerMs = 1000;

/** An answer of Redis counts for this long, so that many probes ask it once. */
const freshMs = 1000;

/** Makes a function that finds out whether a service is ready. */
export function readinessOf(service: Service): () => Promise<Readiness> {
  let asked: { readonly atMs: number; readonly answered: Promise<boolean> } | undefined;
  const redisAnswers = (): Promise<boolean> => {
    const { redis } = service;
    if (redis === undefined) return Promise.resolve(true);
    // A monotonic clock, because probes go on when the machine's clock is set.
    const nowMs = performance.now();
    if (asked === undefined || nowMs - asked.atMs > freshMs) asked = { atMs: nowMs, answered: answers(redis, answerMs) };
    return asked.answered;
  };
  return async () => {
    const { draining, rulesMissing, rules, settings } = service;
    const reasons: string[] = [];
    const notes: string[] = [];
    if (draining) reasons.push("It is draining.");
    if (rulesMissing !== undefined) reasons.push(`There are no rules yet: ${rulesMissing}`);
    if (!(await redisAnswers())) (settings.readyWithoutRedis ? notes : reasons).push("Redis does not answer.");
    if (rules?.refused !== undefined) {
      const { error } = rules.refused;
      notes.push(`The newest rules were refused, and the previous ones are in force: ${error instanceof Error ? error.message : error}`);
    }
    return { ready: reasons.length === 0, reasons, notes };
  };
}
