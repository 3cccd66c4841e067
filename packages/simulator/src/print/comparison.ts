import { policyText } from "@floodgate/core/rules";
import type { ComparedPolicy, Comparison, DifferingClient } from "../compare/compare.js";
import { duration, number, percent } from "./numbers.js";
import { logText } from "./simulation.js";
import { type Described, type Paint, shownKey, tableOf } from "./table.js";

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
  const parts = [`${logText(comparison, paint)}${counted}`, tableOf(paint, columns, policies), differingText(comparison, paint)];
  if (differing.length === 0) parts.pop();
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
