import { policyText } from "../algorithms/descriptions.js";
import { blockOf } from "../decide/blocks.js";
import type { Decision } from "../decide/decision.js";
import { type Duration, formatDuration, parseDuration } from "../support/duration.js";
import { FloodgateError } from "../support/errors.js";
import type { RuleCheck } from "./compiled-rule.js";
import type { Explanation, Misfit } from "./explain.js";
import type { Match } from "./match.js";
import type { PlainRule, Rule } from "./rule.js";

/** What a rule says of a request now. `decision`: what a request of cost 1 would get. `unknown`: only a real request can tell. */
export type Reason = { readonly rule: string; readonly shadow: boolean } & (
  | { readonly says: "counts"; readonly key: string; readonly cost: number; readonly decision: Decision }
  | { readonly says: "passes" | "missing-key" | "ambiguous-path" | "fails" | "overruled" | "unknown"; readonly why: string }
);
type Counted = Extract<Reason, { says: "counts" }>;

/**
 * Adds to explanations what the store holds. Changes nothing.
 * @param why why a rule does not count the request.
 * @param peek reads what a request of cost 1 would get.
 */
export function reasonsOf<Req>(
  explanations: readonly Explanation<Req>[],
  why: (explanation: Exclude<Explanation<Req>, { says: "counts" }>, index: number) => string,
  peek: (check: RuleCheck<Req>) => Decision | PromiseLike<Decision>,
): Promise<Reason[]> {
  return Promise.all(
    explanations.map(async (explanation, i): Promise<Reason> => {
      const { name: rule, shadow } = explanation.rule;
      if (explanation.says !== "counts") {
        return { rule, shadow, says: explanation.says === "rejects" ? explanation.because : explanation.says, why: why(explanation, i) };
      }
      const { key, cost } = explanation.check;
      return { rule, shadow, says: "counts", key, cost, decision: await peek(explanation.check) };
    }),
  );
}

export const isCounted = (reason: Reason): reason is Counted => reason.says === "counts";

/** What is used, beside a block or ban. */
export const usedOf = (decision: Decision): number => (blockOf(decision)?.unblocked ?? decision).used;

/** Whether the store failed, and `onStoreError` allows all or denies all: then nobody has counted, and the numbers say nothing. */
export const isUnchecked = ({ degraded, degradedBy }: Decision): boolean => degraded && degradedBy !== "fallback";

const rejects = ({ decision, cost }: Counted): boolean => !decision.allowed || (!isUnchecked(decision) && cost > decision.remaining);

/** A waiting time. Above ten seconds it is rounded up to whole seconds. */
export const waitText = (ms: number): string => formatDuration(ms < 10_000 ? ms : Math.ceil(ms / 1000) * 1000);

/** What one rule says of a request that it counts: `rejects: banned, for 1h`. */
export function saysText(reason: Counted): string {
  const { decision, cost, shadow } = reason;
  const verb = !rejects(reason) ? "passes" : shadow ? "would reject (shadow)" : "rejects";
  if (isUnchecked(decision)) return `${verb}: the store fails (onStoreError: ${decision.degradedBy})`;
  if (verb === "passes") return verb;
  const why = decision.blocked === undefined ? "" : decision.blocked.kind === "ban" ? ": banned" : ": blocked";
  if (decision.allowed) return `${verb}: ${decision.remaining} left for a cost of ${cost}`;
  const ms = decision.retryAfterMs;
  return `${verb}${why}, ${ms === Number.POSITIVE_INFINITY ? "for ever" : `for ${waitText(ms)}`}`;
}

const named = (reasons: readonly Reason[], said: Reason["says"]): string =>
  reasons
    .filter(({ says }) => says === said)
    .map(({ rule }) => rule)
    .join(", ");

/** What the client would get. */
export function verdictOf(reasons: readonly Reason[]): string {
  const unreadable = named(reasons, "ambiguous-path");
  if (unreadable !== "") return `would be rejected with 400 by ${unreadable}, because servers read its path in different ways`;
  const failing = reasons.find(({ says, shadow }) => says === "fails" && !shadow);
  if (failing !== undefined) return `the app would fail with 500, because of ${failing.rule}`;
  const keyless = named(reasons, "missing-key");
  if (keyless !== "") return `would be rejected with 429 by ${keyless}, because its key is missing`;
  const limiting = reasons.filter(isCounted).filter((reason) => !reason.shadow && rejects(reason));
  const unknown = named(
    reasons.filter(({ shadow }) => !shadow),
    "unknown",
  );
  if (limiting.length === 0) return unknown === "" ? "would pass" : `would pass, unless ${unknown} rejects it`;
  const waitMs = Math.max(...limiting.map(({ decision }) => decision.retryAfterMs));
  const after = waitMs === 0 ? "" : waitMs === Number.POSITIVE_INFINITY ? ", for ever" : `. It would pass in ${waitText(waitMs)}`;
  const status = limiting.some(({ decision }) => isUnchecked(decision)) ? 503 : 429;
  return `would be rejected with ${status} by ${limiting.map(({ rule }) => rule).join(", ")}${after}`;
}

/** What JSON shows of a reason: durations in milliseconds, times in milliseconds since the epoch. */
export function reasonJson(reason: Reason): object {
  const { rule, shadow, says } = reason;
  const mode = shadow ? "shadow" : "enforce";
  if (!isCounted(reason)) return { rule, mode, says, why: reason.why };
  const { key, cost, decision } = reason;
  const { policy, limit, remaining, retryAfterMs, resetAfterMs } = decision;
  const numbers = { limit, used: usedOf(decision), remaining, retryAfterMs, resetAfterMs, blocked: decision.blocked ?? null };
  return { rule, mode, says: rejects(reason) ? "limited" : "counts", key, cost, policy: policyText(policy), ...numbers };
}

/** The parts of a rule that say what it counts. */
type RuleTerms = Pick<PlainRule, "match" | "mode">;

/**
 * Why a rule does not count a request.
 * @param hint how a request is given the rule's key.
 */
export function whyNot<Req>(
  rule: RuleTerms,
  explanation: Exclude<Explanation<Req>, { says: "counts" }>,
  hint: (error?: unknown) => string,
): string {
  switch (explanation.says) {
    case "passes":
      return misfits[explanation.because](rule, hint);
    case "rejects":
      if (explanation.because === "ambiguous-path")
        return "servers read this path in different ways: rejected with 400 (ambiguousPath: reject)";
      return `no key (${hint()}): rejected with 429 (onMissingKey: reject)`;
    case "fails":
      return errorText(explanation.error, hint);
    case "overruled":
      return `${explanation.by.name} decides for the whole request`;
    case "unknown":
      return `its \`${explanation.because}\` is a function of the request, which only a real request can answer`;
  }
}

const misfits: Readonly<Record<Misfit, (rule: RuleTerms, hint: () => string) => string>> = {
  method: ({ match }) => `method: the rule matches ${choiceWords(match?.method ?? "")}`,
  path: ({ match }) => `path: the rule matches ${choiceWords(match?.path ?? "")}`,
  header: ({ match }) =>
    `header: the rule matches requests ${Object.entries(match?.header ?? {})
      .map(entryWords)
      .join(" ")}`,
  descriptor: () => "descriptor: the rule matches descriptors of Envoy's rate limit service",
  exempt: () => "exempt",
  free: () => "its cost is 0",
  "no-match": () => "its match function says no",
  "shadow-fault": () => "it fails, and the request passes (mode: shadow)",
  "no-key": ({ mode }, hint) => `no key (${hint()}): not counted (${mode === "shadow" ? "mode: shadow" : "onMissingKey: skip"})`,
};

function errorText(error: unknown, hint: (error: unknown) => string): string {
  const { code, message } = error as FloodgateError;
  const missing =
    error instanceof FloodgateError && ["FLOODGATE_MISSING_KEY", "FLOODGATE_NO_CLIENT_IP", "FLOODGATE_NO_ROUTE"].includes(code);
  return missing ? `no key (${hint(error)}): the app fails with ${code}` : message;
}

/** What a rule counts, in words for people. */
export interface RuleWords {
  /** The requests: `"POST /posts"`, `"all requests"`, `"a function"`. */
  readonly match: string;
  /** What it counts by: `"ip"`, `"ip, user"`, `"a function"`. */
  readonly key: string;
  /** The ban: `"1h after 5 rejections within 1m"`. Undefined without one. */
  readonly ban: string | undefined;
}

/** Describes a rule whose options are checked. */
export function wordsOf<Req>({ match, key = "ip", ban }: Rule<Req, string>): RuleWords {
  return {
    match: match === undefined ? "all requests" : typeof match === "function" ? "a function" : matchWords(match),
    key: typeof key === "function" ? "a function" : [key].flat().join(", "),
    ban: ban === undefined ? undefined : `${durationWords(ban.for)} after ${ban.after} rejections within ${durationWords(ban.within)}`,
  };
}

function durationWords(duration: Duration): string {
  return formatDuration(parseDuration(duration));
}

function matchWords({ method, path, header = {}, domain, descriptor = {} }: Match): string {
  const target = [method, path].filter((part) => part !== undefined).map(choiceWords);
  if (domain !== undefined) target.push(`descriptors in ${choiceWords(domain)}`);
  const entries = Object.entries(descriptor).map(entryWords);
  if (domain === undefined && entries.length > 0) target.push("descriptors");
  return [...target, ...Object.entries(header).map(entryWords), ...entries].join(" ") || "all requests";
}

function choiceWords(choice: string | readonly string[]): string {
  return [choice].flat().join(" or ");
}

function entryWords([name, value]: [string, string | readonly string[] | boolean]): string {
  if (typeof value === "boolean") return value ? `with ${name}` : `without ${name}`;
  return `with ${name}: ${choiceWords(value)}`;
}
