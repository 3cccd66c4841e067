import { asCharge, type Decision, failedIn, restated, runningMs } from "@floodgate/core/store";
import type { Lanes } from "./lanes.js";
import type { KeyedCheck } from "./limits.js";
import { ConsumeAll, ConsumeSlot, Settle } from "./steps.js";

/**
 * Decides a request under several limits. If their keys share a slot, that is one atomic step. Otherwise (on a Cluster) each slot gets
 * one step, all in parallel. If one rejects, a second round trip refunds the others. Until then other requests may be rejected
 * because of these charges, but no request is allowed beyond a limit.
 */
export function consumeAll(lanes: Lanes, checks: readonly KeyedCheck[], timeoutMs: number): Promise<Decision[]> {
  if (areInOneSlot(lanes, checks)) return lanes.ask(new ConsumeAll(checks, timeoutMs));
  return acrossSlots(lanes, bySlot(lanes, checks), timeoutMs).then((decided) => checks.map((check) => decided.get(check) as Decision));
}

function areInOneSlot(lanes: Lanes, checks: readonly KeyedCheck[]): boolean {
  const slot = lanes.slotOf((checks[0] as KeyedCheck).redisKey);
  return checks.every(({ redisKey }) => lanes.slotOf(redisKey) === slot);
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
  const answers = await Promise.allSettled(slots.map((group) => askFor(lanes, group, timeoutMs)));
  const fault = answers.find((answer) => answer.status === "rejected");
  // Both round trips share the timeout of one decision. After an error nobody waits for the refunds, so they get the full timeout.
  const leftMs = fault === undefined ? Math.max(1, deadlineMs - runningMs()) : timeoutMs;
  const charged = answers.every((answer) => answer.status === "fulfilled" && answer.value.charged);
  const decided = new Map<KeyedCheck, Decision>();
  const refunds: Promise<unknown>[] = [];
  answers.forEach((answer, i) => {
    if (answer.status === "rejected") return;
    const group = slots[i] as KeyedCheck[];
    group.forEach((check, j) => {
      const decision = answer.value.decisions[j] as Decision;
      const refunded = !charged && answer.value.charged && decision.allowed && !check.look;
      decided.set(check, refunded ? uncharged(decision) : decision);
      if (refunded) refunds.push(refund(lanes, check, decision, leftMs));
    });
  });
  // A failed refund stays charged; the request is rejected either way.
  const settled = Promise.allSettled(refunds);
  if (fault !== undefined) throw fault.reason;
  await settled;
  return decided;
}

/** An error says which server it comes from. */
function askFor(lanes: Lanes, group: readonly KeyedCheck[], timeoutMs: number): ConsumeSlot["answer"] {
  const server = lanes.serverOf((group[0] as KeyedCheck).redisKey);
  return lanes.ask(new ConsumeSlot(group, timeoutMs)).catch((error) => {
    throw failedIn(server, error);
  });
}

/** Also drops cached rejections that saw the charge: the next request may pass. */
function refund(lanes: Lanes, { known, key, redisKey }: KeyedCheck, decision: Decision, timeoutMs: number): Promise<unknown> {
  const done = lanes.ask(new Settle(known, redisKey, asCharge(decision), 0, timeoutMs));
  known.denied?.forget(key, done);
  return done;
}

/** The decision as if it had not charged. */
function uncharged(decision: Decision): Decision {
  return restated(decision, { remaining: decision.remaining + decision.cost, retryAfterMs: 0 });
}
