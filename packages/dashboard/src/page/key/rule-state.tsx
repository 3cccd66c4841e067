import type { StateView } from "@floodgate/core";
import { count, duration, moment, percent, plural, visible } from "@floodgate/pages/format";
import { drawState, stretchOf } from "@floodgate/pages/view/drawing";
import { foreign } from "@floodgate/pages/view/elements";
import type { ComponentChildren, VNode } from "preact";
import type { KeyRuleState } from "../../contract.js";

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

/** A state drawn as what it is, with the same in words. */
function showState(state: StateView, nowMs: number): VNode {
  const { words, limit, line } = shown(state, nowMs);
  return (
    <figure class={`limit-state of-${state.kind}`}>
      {limit !== undefined && (
        <div class="limit-label" aria-hidden="true">
          limit {count(limit)}
        </div>
      )}
      {drawState(state, nowMs)}
      {line && lineLabels(line, nowMs)}
      <figcaption>{words}</figcaption>
    </figure>
  );
}

interface Shown {
  /** Said above the dashed line of the drawing. */
  readonly limit?: number;
  /** What is at both ends of the time line, and how far along it now is. */
  readonly line?: { readonly from: string; readonly to: string; readonly nowAt?: number };
  readonly words: ComponentChildren;
}

function shown(state: StateView, nowMs: number): Shown {
  switch (state.kind) {
    case "empty":
      return { words: [main("Nothing is remembered."), sub("The whole limit is free.")] };
    case "bucket":
      return { words: bucketWords(state, nowMs) };
    case "windows":
      return {
        limit: state.limit,
        line: lineOf(stretchOf(state.windows, state.windowMs, nowMs), nowMs),
        words: windowWords(state),
      };
    case "log":
      return {
        line: { from: `${duration(state.windowMs)} ago`, to: "now" },
        words: [
          main(`${count(state.total)} of ${plural(state.limit, "unit")} in the last ${duration(state.windowMs)}.`),
          state.units[0] && sub(`The oldest leaves in ${duration(Math.max(0, state.units[0].atMs + state.windowMs - nowMs))}.`),
        ],
      };
    case "queue":
      return {
        words: [
          // A place is free once all of it has drained.
          main(`${count(Math.ceil(state.length))} of ${plural(state.capacity, "place")} taken.`),
          state.length > 0 && sub(`The queue is empty in ${duration(Math.max(0, state.drainedAtMs - nowMs))}, if nothing else comes.`),
        ],
      };
    case "held":
      return { words: heldWords(state, nowMs) };
  }
}

function heldWords({ held, total, limit, used }: Extract<StateView, { kind: "held" }>, nowMs: number): ComponentChildren {
  const untilMs = held[0]?.untilMs ?? nowMs;
  return [
    main(`${count(total)} of ${plural(limit, "unit")} held.`),
    sub(`The first come back in ${duration(Math.max(0, untilMs - nowMs))} if nobody renews or settles them.`),
    used.kind !== "empty" && shown(used, nowMs).words,
  ];
}

function lineOf([fromMs, toMs]: readonly [number, number], nowMs: number): NonNullable<Shown["line"]> {
  return { from: moment(fromMs, nowMs), to: moment(toMs, nowMs), nowAt: (nowMs - fromMs) / (toMs - fromMs || 1) };
}

const lineLabels = ({ from, to, nowAt = 0 }: NonNullable<Shown["line"]>, nowMs: number): VNode => (
  <div class="ends" aria-hidden="true">
    <span>{from}</span>
    {nowAt >= 0.28 && nowAt <= 0.72 && (
      <span class="at" title={moment(nowMs, nowMs)} style={{ left: `${nowAt * 100}%` }}>
        now
      </span>
    )}
    <span>{to}</span>
  </div>
);

const main = (text: string): VNode => <strong>{text}</strong>;

const sub = (text: string): VNode => <span class="quiet"> {text}</span>;

function bucketWords(state: Extract<StateView, { kind: "bucket" }>, nowMs: number): ComponentChildren {
  const level =
    state.level < 0
      ? `In debt by ${plural(Math.ceil(-state.level), "unit")}.`
      : `${count(Math.floor(state.level))} of ${plural(state.capacity, "unit")} left.`;
  const { refillsAtMs } = state;
  return [main(level), refillsAtMs !== undefined && sub(`The next refill comes in ${duration(Math.max(0, refillsAtMs - nowMs))}.`)];
}

function windowWords(state: Extract<StateView, { kind: "windows" }>): ComponentChildren {
  const counts = state.windows.reduce((sum, { count: counted, weight }) => sum + Math.floor(counted * weight), 0);
  const partly = state.windows.find(({ weight }) => weight > 0 && weight < 1);
  return [
    main(`${count(counts)} of ${plural(state.limit, "unit")} count in this window of ${duration(state.windowMs)}.`),
    partly && sub(`Of the oldest ${count(partly.count)}, ${percent(partly.weight)} still count.`),
  ];
}
