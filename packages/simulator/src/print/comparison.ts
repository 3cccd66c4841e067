import type { Comparison } from "../compare/compare.js";
import { duration, number, percent, policyText } from "./numbers.js";
import { logText } from "./simulation.js";
import { table } from "./table.js";
import { type Paint, shownKey } from "./terminal.js";

/** The report of a comparison, for people. */
export function comparisonText(comparison: Comparison, paint: Paint): string {
  const { policies, windowMs, differing } = comparison;
  const delays = policies.some(({ delayed }) => delayed > 0);
  const columns = [
    { heading: "" },
    { heading: "policy" },
    { heading: "limited", isNumber: true },
    { heading: "share", isNumber: true },
    { heading: "clients limited", isNumber: true },
    { heading: "share", isNumber: true },
    { heading: `most in ${duration(windowMs)}`, isNumber: true },
    { heading: "most in 1s", isNumber: true },
    { heading: "longest lock-out", isNumber: true },
    ...(delays ? [{ heading: "longest wait", isNumber: true }] : []),
  ];
  const rows = policies.map(({ policy, ...measure }, i) => [
    `${i + 1}`,
    policyText(policy),
    number(measure.limited),
    percent(measure.limited, measure.requests),
    number(measure.clientsLimited),
    percent(measure.clientsLimited, measure.clients),
    number(measure.worstWindow.units),
    number(measure.burst.units),
    measure.limited === 0 ? "-" : duration(measure.longestLockoutMs),
    ...(delays ? [measure.delayed === 0 ? "-" : duration(measure.longestQueuedMs)] : []),
  ]);
  const [first] = policies;
  const counted =
    first === undefined ? "" : `${number(first.requests)} of them counted, by ${comparison.by}, for ${number(first.clients)} clients\n`;
  const parts = [`${logText(comparison, paint)}${counted}`, table(paint, columns, rows), differingText(comparison, paint)];
  if (differing.length === 0) parts.pop();
  return parts.join("\n");
}

function differingText({ differing, policies }: Comparison, paint: Paint): string {
  const columns = [
    { heading: "client" },
    { heading: "requests", isNumber: true },
    ...policies.map((_, i) => ({ heading: `limited by ${i + 1}`, isNumber: true })),
  ];
  const rows = differing.map(({ key, requests, limited }) => [shownKey(key), number(requests), ...limited.map(number)]);
  return `${paint("bold", "They differ most on")}\n${table(paint, columns, rows)}`;
}
