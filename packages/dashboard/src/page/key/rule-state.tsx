import { count, duration, moment, plural, visible } from "@floodgate/pages/format";
import { foreign } from "@floodgate/pages/view/elements";
import type { VNode } from "preact";
import type { KeyRuleState } from "../../contract.js";
import { showState } from "./state.js";

/** What one rule knows of a key: what a request would get, then the states as what they are. */
export function RuleState({ state }: { readonly state: KeyRuleState }): VNode {
  const { failed, states = [], ban, block, decision, atMs: nowMs = Date.now() } = state;
  if (failed !== undefined) return <p class="notice bad">The state could not be read: {foreign(failed)}</p>;
  const policies = states.map(({ policy }) => <p class="policy quiet">{foreign(policy)}</p>);
  return (
    <div class="body stack">
      {policies.length === 1 && policies}
      {ban && until(ban.untilMs, "Banned after repeated rejections", nowMs)}
      {block && until(block.untilMs, "Blocked by hand", nowMs)}
      {history(state, nowMs)}
      {decision && verdict(state.mode === "shadow", decision)}
      {states.map((each, i) => [policies.length > 1 && policies[i], showState(each.state, nowMs)])}
    </div>
  );
}

const until = (untilMs: number, words: string, nowMs: number): VNode => (
  <p class="notice bad">
    <strong>{words}</strong> until {moment(untilMs, nowMs)}, for {duration(untilMs - nowMs)} more.
  </p>
);

/** What a person on call asks next: how often it was rejected, and what it was granted. */
function history({ rejections, grant }: KeyRuleState, nowMs: number): VNode | undefined {
  const facts = [
    rejections === undefined ? undefined : rejectionWords(rejections, nowMs),
    grant === undefined ? undefined : `plan ${visible(grant.plan, 60)} granted until ${moment(grant.untilMs, nowMs)}`,
  ].filter((fact) => fact !== undefined);
  return facts.length === 0 ? undefined : <p class="history small quiet">{facts.join(" · ")}</p>;
}

function rejectionWords({ count: most, error, sinceMs }: NonNullable<KeyRuleState["rejections"]>, nowMs: number): string {
  const least = most - error;
  const number = most === 0 ? "no rejection" : error === 0 ? plural(most, "rejection") : `${count(least)} to ${plural(most, "rejection")}`;
  return `${number} in the last ${duration(Math.max(1000, nowMs - sinceMs))}`;
}

function verdict(shadow: boolean, decision: NonNullable<KeyRuleState["decision"]>): VNode {
  const { allowed, remaining, limit, retryAfterMs, resetAfterMs, delayMs } = decision;
  const outcome = allowed
    ? delayMs > 0
      ? { look: "warn", text: `The next request would wait ${duration(delayMs)}` }
      : { look: "good", text: "The next request would pass" }
    : {
        look: shadow ? "warn" : "bad",
        text: shadow ? "The next request would be limited, if the rule were enforced" : "The next request would be rejected",
      };
  const facts = [
    `${count(remaining)} of ${count(limit)} left`,
    allowed ? undefined : retryAfterMs === null ? "no wait would help" : `passes again in ${duration(retryAfterMs)}`,
    resetAfterMs === null || resetAfterMs === 0 ? undefined : `as new in ${duration(resetAfterMs)}`,
  ];
  return (
    <p class="verdict">
      <span class={`state ${outcome.look}`}>{outcome.text}</span>
      <span class="quiet">{facts.filter((fact) => fact !== undefined).join(" · ")}</span>
    </p>
  );
}
