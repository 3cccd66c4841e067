import type { Decision } from "@floodgate/core";
import { decodeKey } from "@floodgate/core/rules";
import { blockOf } from "@floodgate/core/store";
import { type Io, paint } from "../io.js";
import type { SeenKey } from "../look.js";
import { localTime, policyText, waitText } from "./format.js";
import { table } from "./table.js";
import { sanitize } from "./terminal.js";
import { keysText } from "./top.js";

/** What a rule says of a request. `decision`: what a request of cost 1 would get now. */
export type Reason = { readonly rule: string; readonly shadow: boolean } & (
  | { readonly says: "counts"; readonly key: string; readonly cost: number; readonly decision: Decision }
  | { readonly says: "passes" | "missing-key" | "ambiguous-path" | "fails" | "overruled"; readonly why: string }
);
type Counted = Extract<Reason, { says: "counts" }>;

const isCounted = (reason: Reason): reason is Counted => reason.says === "counts";
/** What is used, beside a block or ban. */
const usedOf = (decision: Decision): number => (blockOf(decision)?.unblocked ?? decision).used;
const rejects = ({ decision, cost }: Counted): boolean => !decision.allowed || cost > decision.remaining;

export function reasonsText(io: Io, request: string, reasons: readonly Reason[]): string {
  const counted = reasons.filter(isCounted);
  const rows = counted.map((reason) => {
    const { rule, key, cost, decision } = reason;
    return [rule, key, policyText(decision.policy), `${usedOf(decision)} of ${decision.limit}`, `${cost}`, saysText(reason)];
  });
  const others = reasons.flatMap((reason) => (isCounted(reason) ? [] : [[reason.rule, reason.why]]));
  const parts = [`${paint(io, "bold", `${sanitize(request)}: ${verdict(reasons)}`)}\n`];
  if (rows.length > 0) parts.push(table(io, ["rule", "key", "policy", "used", "cost", "says"], rows));
  if (others.length > 0) parts.push(`\n${paint(io, "bold", "Not counted by")}\n${table(io, ["rule", "why"], others)}`);
  return parts.join("");
}

function saysText(reason: Counted): string {
  const { decision, cost, shadow } = reason;
  if (!rejects(reason)) return "passes";
  const verb = shadow ? "would reject (shadow)" : "rejects";
  const why = decision.blocked === undefined ? "" : decision.blocked.kind === "ban" ? ": banned" : ": blocked";
  if (decision.allowed) return `${verb}: ${decision.remaining} left for a cost of ${cost}`;
  return `${verb}${why}, ${waiting(decision.retryAfterMs)}`;
}

const waiting = (ms: number): string => (ms === Number.POSITIVE_INFINITY ? "for ever" : `for ${waitText(ms)}`);

const named = (reasons: readonly Reason[], said: Reason["says"]): string =>
  reasons
    .filter(({ says }) => says === said)
    .map(({ rule }) => rule)
    .join(", ");

/** What the client would get. */
function verdict(reasons: readonly Reason[]): string {
  const unreadable = named(reasons, "ambiguous-path");
  if (unreadable !== "") return `would be rejected with 400 by ${unreadable}, because servers read its path in different ways`;
  const failing = reasons.find(({ says, shadow }) => says === "fails" && !shadow);
  if (failing !== undefined) return `the app would fail with 500, because of ${failing.rule}`;
  const keyless = named(reasons, "missing-key");
  if (keyless !== "") return `would be rejected with 429 by ${keyless}, because its key is missing`;
  const limiting = reasons.filter(isCounted).filter((reason) => !reason.shadow && rejects(reason));
  if (limiting.length === 0) return "would pass";
  const waitMs = Math.max(...limiting.map(({ decision }) => decision.retryAfterMs));
  const after = waitMs === 0 ? "" : waitMs === Number.POSITIVE_INFINITY ? ", for ever" : `. It would pass in ${waitText(waitMs)}`;
  return `would be rejected with 429 by ${limiting.map(({ rule }) => rule).join(", ")}${after}`;
}

/** For `--json`: durations in milliseconds, times in milliseconds since the epoch. */
export function reasonsJson(request: string, reasons: readonly Reason[]): object {
  return {
    request,
    verdict: verdict(reasons),
    rules: reasons.map((reason) => {
      const { rule, shadow, says } = reason;
      const mode = shadow ? "shadow" : "enforce";
      if (!isCounted(reason)) return { rule, mode, says, why: reason.why };
      const { key, cost, decision } = reason;
      const { policy, limit, remaining, retryAfterMs, resetAfterMs } = decision;
      const numbers = { limit, used: usedOf(decision), remaining, retryAfterMs, resetAfterMs, blocked: decision.blocked ?? null };
      return { rule, mode, says: rejects(reason) ? "limited" : "counts", key, cost, policy: policyText(policy), ...numbers };
    }),
  };
}

/** What all limits hold of keys. */
export function keyReasonsText(io: Io, texts: readonly string[], keys: readonly SeenKey[]): string {
  const who = texts.map(sanitize).join(" and ");
  if (keys.length === 0) return `Redis holds nothing of ${who}. No limit has counted it since its last reset, and no block is in force.\n`;
  const named = (...states: SeenKey["state"][]): string =>
    [...new Set(keys.filter(({ state }) => states.includes(state)).map(({ name }) => name))].join(", ");
  const [all, some] = [named("limited", "blocked"), named("some plans")];
  const by = [...(all === "" ? [] : [`by ${all}`]), ...(some === "" ? [] : [`under some plans by ${some}`])];
  const verdict = by.length === 0 ? "no limit rejects its next request" : `its next request is rejected ${by.join(", and ")}`;
  return `${paint(io, "bold", `${who}: ${verdict}`)}\n${keysText(io, keys)}${factsText(io, keys)}`;
}

/** Why each limit rejects the key, what counts towards a ban, what was granted, and the command that frees the key before its time. */
function factsText(io: Io, keys: readonly SeenKey[]): string {
  const rows = keys.flatMap((key) => {
    const facts = factsOf(key);
    const commands = commandsFor(key);
    return facts.length + commands.length === 0 ? [] : [[key.name, facts.join(", "), commands.join(" or ")]];
  });
  return rows.length === 0 ? "" : `\n${table(io, ["limit", "because", "what frees it now"], rows)}`;
}

function factsOf({ state, blocked, ban, grant }: SeenKey): string[] {
  const limited = { limited: "its limit is used up", "some plans": "used up under some plans" } as Partial<
    Record<SeenKey["state"], string>
  >;
  const why = blocked === undefined ? limited[state] : blocked.kind === "ban" ? "banned after repeated rejections" : "blocked by hand";
  return [
    ...(why === undefined ? [] : [why]),
    ...(ban === undefined || blocked !== undefined
      ? []
      : [`${ban.rejections} of ${ban.of} rejections within ${waitText(ban.withinMs)} for a ban`]),
    ...(grant === undefined ? [] : [`plan ${grant.plan} until ${localTime(grant.untilMs)}`]),
  ];
}

/** The commands that change what is said of a key. */
function commandsFor({ name, key, state, inCode, blocked, grant, plans = [] }: SeenKey): string[] {
  const of = `--rule ${quoted(name)} ${keyOptions(key)}${inCode ? " --policy '<its policy>'" : ""}`;
  const isShort = state === "limited" || state === "some plans";
  const [plan] = plans.filter((other) => other !== grant?.plan);
  return [
    ...(blocked === undefined ? [] : [`floodgate unblock ${of}`]),
    ...(isShort ? [`floodgate reset ${of}`] : []),
    ...(isShort && plan !== undefined ? [`floodgate grant ${of} --plan ${quoted(plan)} --for 30d`] : []),
    ...(grant === undefined ? [] : [`floodgate revoke ${of}`]),
  ];
}

/** A key's text as the options that name it. */
function keyOptions(text: string): string {
  const [, address] = /^missing-key-ip:(.*)$/.exec(text) ?? [];
  if (address !== undefined) return `--ip ${quoted(address)}`;
  const parts = [decodeKey(text) ?? text].flat() as unknown[];
  return parts.map((part) => `--key ${quoted(String(part))}`).join(" ");
}

/** For a shell. */
const quoted = (text: string): string => (/^[\w.:@/%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** For `--json`: durations in milliseconds. */
export function keyReasonsJson(keys: readonly SeenKey[]): object {
  return { keys: keys.map(({ count, ...key }) => ({ ...key, used: count?.used ?? null, limit: count?.limit ?? null })) };
}
