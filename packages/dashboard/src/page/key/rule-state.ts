import { foreign, h, visible } from "@floodgate/pages/dom";
import { count, duration, moment, plural } from "@floodgate/pages/format";
import type { KeyRuleState } from "../../contract.js";
import { showState } from "./state.js";

/** What one rule knows of a key: what a request would get, then the states as what they are. */
export function describe(state: KeyRuleState, nowMs: number): Node[] {
  if (state.failed !== undefined) return [h("p", { class: "notice bad" }, "The state could not be read: ", foreign(state.failed))];
  return [
    ...(state.states?.length === 1 ? state.states.map((each) => h("p", { class: "policy quiet" }, foreign(each.policy))) : []),
    until(state.ban, "Banned after repeated rejections", nowMs),
    until(state.block, "Blocked by hand", nowMs),
    history(state, nowMs),
    state.decision === undefined ? undefined : verdict(state, state.decision),
    ...(state.states ?? []).flatMap((each, _, all) => [
      all.length > 1 ? h("p", { class: "policy quiet" }, foreign(each.policy)) : undefined,
      showState(each.state, nowMs),
    ]),
  ].filter((part) => part !== undefined);
}

const until = (end: { readonly untilMs: number } | undefined, words: string, nowMs: number): HTMLElement | undefined =>
  end === undefined
    ? undefined
    : h(
        "p",
        { class: "notice bad" },
        h("strong", {}, `${words}`),
        ` until ${moment(end.untilMs, nowMs)}, for ${duration(end.untilMs - nowMs)} more.`,
      );

/** What a person on call asks next: how often it was rejected, and what it was granted. */
function history({ rejections, grant }: KeyRuleState, nowMs: number): HTMLElement | undefined {
  const facts = [
    rejections === undefined ? undefined : rejectionWords(rejections, nowMs),
    grant === undefined ? undefined : `plan ${visible(grant.plan, 60)} granted until ${moment(grant.untilMs, nowMs)}`,
  ].filter((fact) => fact !== undefined);
  return facts.length === 0 ? undefined : h("p", { class: "history small quiet" }, facts.join(" · "));
}

function rejectionWords({ count: most, error, sinceMs }: NonNullable<KeyRuleState["rejections"]>, nowMs: number): string {
  const least = most - error;
  const number = most === 0 ? "no rejection" : error === 0 ? plural(most, "rejection") : `${count(least)} to ${plural(most, "rejection")}`;
  return `${number} in the last ${duration(Math.max(1000, nowMs - sinceMs))}`;
}

function verdict(state: KeyRuleState, decision: NonNullable<KeyRuleState["decision"]>): HTMLElement {
  const { allowed, remaining, limit, retryAfterMs, resetAfterMs, delayMs } = decision;
  const shadow = state.mode === "shadow";
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
  return h(
    "p",
    { class: "verdict" },
    h("span", { class: `state ${outcome.look}` }, outcome.text),
    h("span", { class: "quiet" }, facts.filter((fact) => fact !== undefined).join(" · ")),
  );
}
