import { formatDuration } from "@floodgate/core/rules";
import { type Io, paint } from "../io.js";
import { type KeyState, type Verdict, verdictOf } from "../redis/key-state.js";
import type { Leased } from "../redis/stored-keys.js";
import type { Target } from "../redis/target.js";
import { count, localTime, policyText, table, waitText } from "./format.js";
import { sanitize } from "./terminal.js";

export function keyStateText(io: Io, target: Target, state: KeyState): string {
  const { atMs, plans } = state;
  const { rule } = target;
  const hasPlans = rule.plans !== undefined;
  const headings = [...(hasPlans ? ["plan"] : []), "policy", "used", "left", "next allowed", "reset"];
  const rows = plans.map(({ plan, used, decision }) => [
    ...(hasPlans ? [plan ?? "(others)"] : []),
    policyText(decision.policy),
    `${used} of ${decision.limit}`,
    `${decision.remaining}`,
    when(decision.retryAfterMs, atMs),
    when(decision.resetAfterMs, atMs),
  ]);
  const shadow = rule.shadow ? "The rule has mode: shadow, so it rejects nothing.\n" : "";
  return `${title(io, target, verdictText(io, verdictOf(rule, state)))}${table(io, headings, rows)}${blockText(io, state)}${grantText(state)}${shadow}`;
}

function grantText({ grant }: KeyState): string {
  return grant === undefined ? "" : `  granted: plan ${sanitize(grant.plan)} until ${localTime(grant.untilMs)}\n`;
}

/** The units that are leased count as used. */
export function leasedText(leased: Leased | undefined): string {
  if (leased === undefined) return "";
  return `  leased (used, maybe not spent): ${count(leased.units, "unit")} by ${leased.processes} ${leased.processes === 1 ? "process" : "processes"}\n`;
}

/** The text for a key that held a foreign value. */
export function foreignText(io: Io, target: Target): string {
  return title(io, target, "unknown, because the key held a value that is not a limit's state");
}

function title(io: Io, { rule, keyText }: Target, verdict: string): string {
  return `${paint(io, "bold", `${rule.name}, key ${sanitize(keyText)}: ${verdict}`)}\n`;
}

function verdictText(io: Io, verdict: Verdict): string {
  if (verdict === "open") return paint(io, "green", "not limited");
  if (verdict === "would be limited") return verdict;
  return paint(io, "red", verdict === "some plans" ? "limited under some plans" : verdict);
}

/** Says how long the key is banned or blocked; else what counts towards a ban, if the rule has one. */
function blockText(io: Io, { atMs, blocked, ban: state }: KeyState): string {
  if (blocked !== undefined) {
    const { kind, leftMs } = blocked;
    const what = kind === "ban" ? "banned after repeated rejections" : "blocked by hand";
    return paint(io, "red", `  ${what}, for ${waitText(leftMs)} more, until ${localTime(atMs + leftMs)}\n`);
  }
  if (state === undefined) return "";
  const { ban, rejections } = state;
  const { quota, spanMs } = ban.rejections.policy;
  return `  not banned: ${count(rejections, "rejection")} of ${quota} within ${formatDuration(spanMs)} for a ban of ${formatDuration(ban.forMs)}\n`;
}

function when(ms: number, atMs: number): string {
  if (ms === 0) return "now";
  return ms === Number.POSITIVE_INFINITY ? "never" : `in ${waitText(ms)}, ${localTime(atMs + ms)}`;
}

/** The state for `--json`: durations in milliseconds, times in milliseconds since the epoch. */
export function keyStateJson({ rule, keyText }: Target, { atMs, plans, blocked, ban, grant }: KeyState): object {
  return {
    rule: rule.name,
    key: keyText,
    mode: rule.shadow ? "shadow" : "enforce",
    plans: plans.map(({ plan = null, used, decision }) => {
      const { policy, allowed, limit, remaining, retryAfterMs, resetAfterMs } = decision;
      return { plan, policy: policyText(policy), allowed, limit, used, remaining, retryAfterMs, resetAfterMs };
    }),
    blocked: blocked === undefined ? null : { ...blocked, untilMs: atMs + blocked.leftMs },
    ban: ban === undefined ? null : { rejections: ban.rejections },
    grant: grant === undefined ? null : { plan: grant.plan, untilMs: grant.untilMs },
  };
}
