import { policyText } from "@floodgate/core/rules";
import type { ComparedPolicy, Comparison, DifferingClient } from "../compare/compare.js";
import type { MeasuredClient } from "../measure/rule-meter.js";
import type { LogSummary, SimulatedRule, Simulation } from "../simulate.js";
import { bytes, count, duration, number, percent, time } from "./format.js";
import { type Described, type Paint, sanitize, shownKey, tableOf } from "./table.js";

/** The report of a simulation, for people. */
export function simulationText(simulation: Simulation, paint: Paint): string {
  const { rules, requests } = simulation;
  const parts = [logText(simulation, paint), rulesText(rules, paint)];
  if (requests > 0) parts.push(verdictText(simulation, paint));
  for (const rule of rules) parts.push(ruleText(rule, rules.length > 1, paint));
  return parts.join("\n");
}

/** A simulation that goes on, in one line: `2026-11-20 12:00:03 UTC  1,200 requests  per-ip: 40 limited (3.3 %), 2 of 90 clients`. */
export function simulationLine({ rules, requests, lastMs }: Simulation): string {
  const each = rules.map(
    ({ name, limited, requests, clients, clientsLimited }) =>
      `${name}: ${number(limited)} limited (${percent(limited, requests)}), ${number(clientsLimited)} of ${count(clients, "client")}`,
  );
  return sanitize([lastMs === undefined ? "no time yet" : `${time(lastMs)} UTC`, count(requests, "request"), ...each].join("  "));
}

/** What was read: `4,000 requests in 4,000 lines, 2015-05-17 10:05:00 to …`. */
function logText({ lines, requests, firstMs, lastMs, formats }: LogSummary, paint: Paint): string {
  const names = [...new Set(Object.values(formats))];
  const format = names.length === 0 ? "" : `, format ${names.join(", ")}`;
  const span = firstMs === undefined || lastMs === undefined ? "" : `${time(firstMs)} to ${time(lastMs)} UTC\n`;
  return `${paint("bold", sanitize(`${count(requests, "request")} in ${count(lines, "line")}${format}`))}\n${span}`;
}

function rulesText(rules: readonly SimulatedRule[], paint: Paint): string {
  const columns: Described<SimulatedRule>[] = [
    ["rule", ({ name, mode }) => (mode === "shadow" ? `${name} (shadow)` : name), "text"],
    ["policy", ({ policy }) => policyText(policy), "text"],
    ["by", ({ by }) => by, "text"],
    ["requests", ({ requests }) => number(requests)],
    ["allowed", ({ allowed }) => number(allowed)],
    ["limited", ({ limited }) => number(limited)],
    ["share", ({ limited, requests }) => percent(limited, requests)],
    ["clients", ({ clients }) => number(clients)],
    ["ever limited", ({ clientsLimited }) => number(clientsLimited)],
    ["share", ({ clientsLimited, clients }) => percent(clientsLimited, clients)],
  ];
  return tableOf(paint, columns, rules);
}

function verdictText({ requests, rejected, failed }: Simulation, paint: Paint): string {
  const failures = Object.values(failed).reduce((sum, each) => sum + each, 0);
  const verdict =
    rejected === 0
      ? paint("green", "No request would have been rejected.")
      : paint("red", `${number(rejected)} of ${count(requests, "request")} (${percent(rejected, requests)}) would have been rejected.`);
  return `${verdict}${failures === 0 ? "" : ` ${count(failures, "request")} would have failed.`}\n`;
}

/** @param isOneOfMany whether other rules may reject requests that this one then does not count. */
function ruleText(rule: SimulatedRule, isOneOfMany: boolean, paint: Paint): string {
  if (rule.requests === 0) return `${paint("bold", sanitize(rule.name))}\n  No request of the log matches this rule.\n`;
  const { worstWindow, burst, memory } = rule;
  const facts = [
    `let at most ${number(worstWindow.units)} through in any ${duration(worstWindow.windowMs)} for one client, and ${number(burst.units)} in a second`,
    rule.limited > 0 && `longest lock-out ${duration(rule.longestLockoutMs)}`,
    rule.delayed > 0 &&
      `held ${count(rule.delayed, "request")} back for ${duration(rule.queuedMs)} in all, the longest for ${duration(rule.longestQueuedMs)}`,
    rule.bans > 0 && count(rule.bans, "ban"),
    notCounted(rule),
    `at most ${count(rule.keysAtOnce, "key")} at once: about ${bytes(memory.inMemory)} in memory, ${bytes(memory.inRedis)} in Redis`,
  ].filter(Boolean);
  const top =
    rule.topLimited.length === 0
      ? ""
      : `  Limited most${isOneOfMany ? ", without the requests that only other rules rejected" : ""}:\n${clientsText(rule.topLimited, rule.windowMs, paint)}`;
  return `${paint("bold", sanitize(rule.name))}\n${facts.map((fact) => `  ${fact}\n`).join("")}${top}`;
}

function notCounted({ exempt, keyless }: SimulatedRule): string {
  const parts = [exempt > 0 ? `${number(exempt)} of exempt clients` : "", keyless > 0 ? `${number(keyless)} without a key` : ""];
  const words = parts.filter((part) => part !== "").join(", ");
  return words === "" ? "" : `requests that it did not count: ${words}`;
}

function clientsText(clients: readonly MeasuredClient[], windowMs: number, paint: Paint): string {
  const columns: Described<MeasuredClient>[] = [
    ["client", ({ key }) => shownKey(key), "text"],
    ["requests", ({ requests }) => number(requests)],
    ["limited", ({ limited }) => number(limited)],
    ["share", ({ limited, requests }) => percent(limited, requests)],
    [`most in ${duration(windowMs)}`, ({ peak }) => number(peak)],
    ["longest lock-out", ({ limited, longestLockoutMs }) => (limited === 0 ? "-" : duration(longestLockoutMs))],
  ];
  return tableOf(paint, columns, clients, "    ");
}

/** The report of a comparison, for people. */
export function comparisonText(comparison: Comparison, paint: Paint): string {
  const { policies, windowMs, differing } = comparison;
  const columns: Described<ComparedPolicy>[] = [
    ["", (each) => `${policies.indexOf(each) + 1}`, "text"],
    ["policy", ({ policy }) => policyText(policy), "text"],
    ["limited", ({ limited }) => number(limited)],
    ["share", ({ limited, requests }) => percent(limited, requests)],
    ["clients limited", ({ clientsLimited }) => number(clientsLimited)],
    ["share", ({ clientsLimited, clients }) => percent(clientsLimited, clients)],
    [`most in ${duration(windowMs)}`, ({ worstWindow }) => number(worstWindow.units)],
    ["most in 1s", ({ burst }) => number(burst.units)],
    ["longest lock-out", ({ limited, longestLockoutMs }) => (limited === 0 ? "-" : duration(longestLockoutMs))],
  ];
  if (policies.some(({ delayed }) => delayed > 0)) {
    columns.push(["longest wait", ({ delayed, longestQueuedMs }) => (delayed === 0 ? "-" : duration(longestQueuedMs))]);
  }
  const [first] = policies;
  const counted =
    first === undefined ? "" : `${number(first.requests)} of them counted, by ${comparison.by}, for ${number(first.clients)} clients\n`;
  const parts = [`${logText(comparison, paint)}${counted}`, tableOf(paint, columns, policies)];
  if (differing.length > 0) parts.push(differingText(comparison, paint));
  return parts.join("\n");
}

function differingText({ differing, policies }: Comparison, paint: Paint): string {
  const columns: Described<DifferingClient>[] = [
    ["client", ({ key }) => shownKey(key), "text"],
    ["requests", ({ requests }) => number(requests)],
    ...policies.map((_, i): Described<DifferingClient> => [`limited by ${i + 1}`, ({ limited }) => number(limited[i] ?? 0)]),
  ];
  return `${paint("bold", "They differ most on")}\n${tableOf(paint, columns, differing)}`;
}
