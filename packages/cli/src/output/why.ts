import { decodeKey, isCounted, type Reason, reasonJson, saysText, usedOf, verdictOf } from "@floodgate/core/rules";
import { type Io, paint } from "../io.js";
import type { SeenKey } from "../redis/look.js";
import { localTime, policyText, table, waitText } from "./format.js";
import { policyOption } from "./state-kind.js";
import { sanitize, shellWord } from "./terminal.js";
import { keysText, seenKeyJson } from "./top.js";

export function reasonsText(io: Io, request: string, reasons: readonly Reason[]): string {
  const counted = reasons.filter(isCounted);
  const rows = counted.map((reason) => {
    const { rule, key, cost, decision } = reason;
    return [rule, key, policyText(decision.policy), `${usedOf(decision)} of ${decision.limit}`, `${cost}`, saysText(reason)];
  });
  const others = reasons.flatMap((reason) => (isCounted(reason) ? [] : [[reason.rule, reason.why]]));
  const parts = [`${paint(io, "bold", `${sanitize(request)}: ${verdictOf(reasons)}`)}\n`];
  if (rows.length > 0) parts.push(table(io, ["rule", "key", "policy", "used", "cost", "says"], rows));
  if (others.length > 0) parts.push(`\n${paint(io, "bold", "Not counted by")}\n${table(io, ["rule", "why"], others)}`);
  return parts.join("");
}

/** For `--json`: durations in milliseconds, times in milliseconds since the epoch. */
export function reasonsJson(request: string, reasons: readonly Reason[]): object {
  return { request, verdict: verdictOf(reasons), rules: reasons.map(reasonJson) };
}

/** What all limits hold of keys. */
export function keyReasonsText(io: Io, texts: readonly string[], keys: readonly SeenKey[]): string {
  const who = texts.map(sanitize).join(" and ");
  if (keys.length === 0) return `Redis holds nothing of ${who}. No limit has counted it since its last reset, and no block is in force.\n`;
  const named = (...states: SeenKey["state"][]): string =>
    [...new Set(keys.filter(({ state }) => states.includes(state)).map(({ name }) => name))].join(", ");
  const [all, some, unknown] = [named("limited", "blocked"), named("some plans"), named("unknown")];
  const by = [all && `by ${all}`, some && `under some plans by ${some}`].filter((words) => words !== "");
  const rejected = `its next request is rejected ${by.join(", and ")}${unknown === "" ? "" : `, and perhaps by ${unknown}`}`;
  const open = unknown === "" ? "no limit rejects its next request" : `its next request may be rejected by ${unknown}`;
  const verdict = by.length === 0 ? open : rejected;
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
  const limited: Partial<Record<SeenKey["state"], string>> = {
    limited: "its limit is used up",
    "some plans": "used up under some plans",
    unknown: "perhaps used up: floodgate status, with the same options, shows it",
  };
  const why = blocked === undefined ? limited[state] : blocked.kind === "ban" ? "banned after repeated rejections" : "blocked by hand";
  const towardsBan = blocked === undefined ? ban : undefined;
  return [
    why,
    towardsBan && `${towardsBan.rejections} of ${towardsBan.of} rejections within ${waitText(towardsBan.withinMs)} for a ban`,
    grant && `plan ${grant.plan} until ${localTime(grant.untilMs)}`,
  ].filter((fact) => fact !== undefined);
}

/** The commands that change what is said of a key. */
function commandsFor({ name, key, state, inCode, stateKind, blocked, grant, plans = [] }: SeenKey): string[] {
  const of = `--rule ${shellWord(name)} ${keyOptions(key)}${inCode ? ` ${policyOption(stateKind)}` : ""}`;
  const isShort = state === "limited" || state === "some plans" || state === "unknown";
  const [plan] = plans.filter((other) => other !== grant?.plan);
  return [
    blocked && `floodgate unblock ${of}`,
    isShort && `floodgate reset ${of}`,
    isShort && plan !== undefined && `floodgate grant ${of} --plan ${shellWord(plan)} --for 30d`,
    grant && `floodgate revoke ${of}`,
  ].filter((command) => typeof command === "string");
}

/** A key's text as the options that name it. */
function keyOptions(text: string): string {
  const [, address] = /^missing-key-ip:(.*)$/.exec(text) ?? [];
  if (address !== undefined) return `--ip ${shellWord(address)}`;
  const parts = [decodeKey(text) ?? text].flat() as unknown[];
  return parts.map((part) => `--key ${shellWord(String(part))}`).join(" ");
}

/** For `--json`: durations in milliseconds. */
export function keyReasonsJson(keys: readonly SeenKey[]): object {
  return { keys: keys.map(seenKeyJson) };
}
