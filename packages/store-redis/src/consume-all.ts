import { asCharge, copyWith, type Decision, failedIn, passesAll, unblockedMs } from "@floodgate/core/store";
import type { CommandQueues } from "./command-queues.js";
import type { KeyedCheck } from "./limits.js";
import { ConsumeAll, Settle } from "./steps.js";

/**
 * Decides a request under several limits. If their keys share a slot, that is one atomic step. Otherwise (on a Cluster) each slot gets
 * one step, all in parallel. If one rejects, a second round trip refunds the others. Until then other requests may be rejected
 * because of these charges, but no request is allowed beyond a limit.
 */
export function consumeAll(queues: CommandQueues, checks: readonly KeyedCheck[], timeoutMs: number): Promise<Decision[]> {
  const slots = queues.bySlot(checks);
  if (slots.length === 1) return queues.ask(new ConsumeAll(checks, timeoutMs));
  return acrossSlots(queues, slots, timeoutMs).then((decided) => checks.map((check) => decided.get(check) as Decision));
}

async function acrossSlots(
  queues: CommandQueues,
  slots: readonly (readonly KeyedCheck[])[],
  timeoutMs: number,
): Promise<Map<KeyedCheck, Decision>> {
  const deadlineMs = unblockedMs() + timeoutMs;
  const answers = await Promise.allSettled(slots.map((group) => askFor(queues, group, timeoutMs)));
  const fault = answers.find((answer) => answer.status === "rejected");
  // Both round trips share the timeout of one decision. After an error nobody waits for the refunds, so they get the full timeout.
  const leftMs = fault === undefined ? Math.max(1, deadlineMs - unblockedMs()) : timeoutMs;
  const isCharged = (answer: PromiseSettledResult<Decision[]>, i: number): boolean =>
    answer.status === "fulfilled" && passesAll(slots[i] as readonly KeyedCheck[], answer.value);
  const charged = answers.every(isCharged);
  const decided = new Map<KeyedCheck, Decision>();
  const refunds: Promise<unknown>[] = [];
  answers.forEach((answer, i) => {
    if (answer.status === "rejected") return;
    const group = slots[i] as readonly KeyedCheck[];
    group.forEach((check, j) => {
      const decision = answer.value[j] as Decision;
      const refunded = !charged && isCharged(answer, i) && decision.allowed && !check.dryRun;
      decided.set(check, refunded ? uncharged(decision) : decision);
      if (refunded) refunds.push(refund(queues, check, decision, leftMs));
    });
  });
  // A failed refund stays charged; the request is rejected either way.
  const settled = Promise.allSettled(refunds);
  if (fault !== undefined) throw fault.reason;
  await settled;
  return decided;
}

/** An error says which server it comes from. */
function askFor(queues: CommandQueues, group: readonly KeyedCheck[], timeoutMs: number): Promise<Decision[]> {
  const server = queues.serverOf((group[0] as KeyedCheck).redisKey);
  return queues.ask(new ConsumeAll(group, timeoutMs)).catch((error) => {
    throw failedIn(server, error);
  });
}

/** Also drops cached rejections that saw the charge: the next request may pass. */
function refund(queues: CommandQueues, { known, key, redisKey }: KeyedCheck, decision: Decision, timeoutMs: number): Promise<unknown> {
  const done = queues.ask(new Settle(known, redisKey, asCharge(decision), 0, timeoutMs));
  known.denied?.forget(known.suffix, key, done);
  return done;
}

/** The decision as if it had not charged. */
function uncharged(decision: Decision): Decision {
  return copyWith(decision, { remaining: decision.remaining + decision.cost, retryAfterMs: 0, heldUntilMs: undefined });
}
