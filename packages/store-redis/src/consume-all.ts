import { asCharge, type Decision, restated, runningMs } from "@floodgate/core/store";
import type { Lanes } from "./lanes.js";
import { ConsumeAll, type KeyedCheck, Settle } from "./steps.js";

/**
 * Decides a request under several limits. Where their keys share a slot that is one atomic step. On a Cluster whose slots differ
 * it is one such step a slot, all at the same time; where one rejects, the others give back what they charged in a second round
 * trip, and there is no third. Meanwhile other requests may meet those charges and be rejected: never one too many passes.
 */
export function consumeAll(lanes: Lanes, checks: readonly KeyedCheck[], timeoutMs: number): Promise<Decision[]> {
  const slot = lanes.slotOf((checks[0] as KeyedCheck).redisKey);
  if (checks.every(({ redisKey }) => lanes.slotOf(redisKey) === slot)) {
    return lanes.ask(new ConsumeAll(checks, timeoutMs)).then(({ decisions }) => [...decisions]);
  }
  return acrossSlots(lanes, bySlot(lanes, checks), timeoutMs).then((decided) => checks.map((check) => decided.get(check) as Decision));
}

function bySlot(lanes: Lanes, checks: readonly KeyedCheck[]): KeyedCheck[][] {
  const slots = new Map<number, KeyedCheck[]>();
  for (const check of checks) {
    const slot = lanes.slotOf(check.redisKey);
    slots.set(slot, [...(slots.get(slot) ?? []), check]);
  }
  return [...slots.values()];
}

async function acrossSlots(lanes: Lanes, slots: readonly KeyedCheck[][], timeoutMs: number): Promise<Map<KeyedCheck, Decision>> {
  const deadlineMs = runningMs() + timeoutMs;
  const answers = await Promise.allSettled(slots.map((group) => lanes.ask(new ConsumeAll(group, timeoutMs))));
  const fault = answers.find((answer) => answer.status === "rejected");
  // Both round trips share the time of one decision; a fault is told at once, and what follows it has all the time again.
  const leftMs = fault === undefined ? Math.max(1, deadlineMs - runningMs()) : timeoutMs;
  const charged = answers.every((answer) => answer.status === "fulfilled" && answer.value.charged);
  const decided = new Map<KeyedCheck, Decision>();
  const givenBack: Promise<unknown>[] = [];
  answers.forEach((answer, i) => {
    if (answer.status === "rejected") return;
    const group = slots[i] as KeyedCheck[];
    group.forEach((check, j) => {
      const decision = answer.value.decisions[j] as Decision;
      const inVain = !charged && answer.value.charged && decision.allowed && !check.look;
      decided.set(check, inVain ? uncharged(decision) : decision);
      if (inVain) givenBack.push(giveBack(lanes, check, decision, leftMs));
    });
  });
  // What could not be given back stays charged: the request is rejected all the same.
  const settled = Promise.allSettled(givenBack);
  if (fault !== undefined) throw fault.reason;
  await settled;
  return decided;
}

/** Who has met the charge was rejected, but whoever comes next may pass. */
function giveBack(lanes: Lanes, { known, key, redisKey }: KeyedCheck, decision: Decision, timeoutMs: number): Promise<unknown> {
  const done = lanes.ask(new Settle(known, redisKey, asCharge(decision), 0, timeoutMs));
  known.denied?.forget(key, done);
  return done;
}

/** A decision as it would have been without its charge. */
function uncharged(decision: Decision): Decision {
  return restated(decision, { remaining: decision.remaining + decision.cost, retryAfterMs: 0 });
}
