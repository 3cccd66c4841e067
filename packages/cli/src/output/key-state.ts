import { type Io, paint } from "../io.js";
import type { BanState, KeyState, PlanState } from "../key-state.js";
import type { Subject } from "../subject.js";
import { table } from "./table.js";
import { harmless } from "./terminal.js";
import { count, duration, localTime, policyWords, wait } from "./words.js";

export function keyStateText(io: Io, subject: Subject, { atMs, plans, ban }: KeyState): string {
  const { rule } = subject;
  const titled = rule.plans !== undefined;
  const headings = [...(titled ? ["plan"] : []), "policy", "used", "left", "next passes", "all forgotten"];
  const rows = plans.map(({ plan, used, decision }) => [
    ...(titled ? [plan ?? "(others)"] : []),
    policyWords(decision.policy),
    `${used} of ${decision.limit}`,
    `${decision.remaining}`,
    when(decision.retryAfterMs, atMs),
    when(decision.resetAfterMs, atMs),
  ]);
  const shadow = rule.shadow ? "The rule is only watched (mode: shadow): it rejects nothing.\n" : "";
  return `${title(io, subject, verdict(io, plans))}${table(io, headings, rows)}${ban === undefined ? "" : banText(io, ban, atMs)}${shadow}`;
}

/** What is said of a key under which something else was. */
export function foreignText(io: Io, subject: Subject): string {
  return title(io, subject, "unknown, for a value was there that is no state of a limit");
}

function title(io: Io, { rule, keyText }: Subject, verdict: string): string {
  return `${paint(io, "bold", `${rule.name}, key ${harmless(keyText)}: ${verdict}`)}\n`;
}

function verdict(io: Io, plans: readonly PlanState[]): string {
  const blocked = plans.filter(({ decision }) => !decision.allowed).length;
  if (blocked === 0) return paint(io, "green", "not blocked");
  return paint(io, "red", blocked === plans.length ? "blocked" : "blocked under some plans");
}

function banText(io: Io, { ban, leftMs, rejections }: BanState, atMs: number): string {
  if (leftMs > 0) return paint(io, "red", `  banned for ${wait(leftMs)} more, until ${localTime(atMs + leftMs)}\n`);
  const { quota, spanMs } = ban.rejections.policy;
  return `  not banned: ${count(rejections, "rejection")} of the ${quota} within ${duration(spanMs)} that lead to a ban of ${duration(ban.forMs)}\n`;
}

function when(ms: number, atMs: number): string {
  if (ms === 0) return "now";
  return ms === Number.POSITIVE_INFINITY ? "never" : `in ${wait(ms)}, ${localTime(atMs + ms)}`;
}

/** The same for programs: times in milliseconds, instants since the epoch. */
export function keyStateJson({ rule, keyText }: Subject, { atMs, plans, ban }: KeyState): object {
  return {
    rule: rule.name,
    key: keyText,
    mode: rule.shadow ? "shadow" : "enforce",
    plans: plans.map(({ plan = null, used, decision }) => {
      const { policy, allowed, limit, remaining, retryAfterMs, resetAfterMs } = decision;
      return { plan, policy: policyWords(policy), allowed, limit, used, remaining, retryAfterMs, resetAfterMs };
    }),
    ban:
      ban === undefined
        ? null
        : {
            banned: ban.leftMs > 0,
            leftMs: ban.leftMs,
            untilMs: ban.leftMs > 0 ? atMs + ban.leftMs : null,
            rejections: ban.rejections,
          },
  };
}
