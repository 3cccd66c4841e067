import { h } from "@floodgate/pages/dom";
import { count, duration, plural } from "@floodgate/pages/format";
import type { ReportData, ReportRule } from "../model.js";
import { dayOf, percent, share, spanOf } from "../words.js";
import { figure } from "./section.js";

/** What came out, in one sentence and a few figures. */
export function summary(data: ReportData): HTMLElement {
  const { requests, firstMs, lastMs, rules } = data;
  const most = (of: (rule: ReportRule) => number): ReportRule | undefined => [...rules].sort((a, b) => of(b) - of(a))[0];
  const widest = most((rule) => rule.clients);
  const strictest = most((rule) => rule.clientsLimited);
  const clients = widest?.clients ?? 0;
  const touched = strictest?.clientsLimited ?? 0;
  const lockouts = rules.map(({ longestLockoutMs }) => longestLockoutMs);
  const longest = lockouts.includes(null) ? null : Math.max(0, ...(lockouts as number[]));
  const figures = [
    figure(
      "Requests",
      count(requests),
      firstMs === undefined || lastMs === undefined ? "" : `in ${duration(Math.max(1000, lastMs - firstMs))}`,
    ),
    ...(data.rejected === undefined ? [] : [figure("Rejected", count(data.rejected), percent(data.rejected, requests))]),
    figure("Clients", count(clients), widest === undefined ? "" : `by ${widest.by}`),
    ...(data.task === "rules"
      ? [
          figure(
            "Clients ever limited",
            count(touched),
            strictest === undefined || touched === 0
              ? ""
              : `${percent(touched, strictest.clients)} of ${count(strictest.clients)} by ${strictest.by}`,
          ),
          figure("Longest lock-out", longest === 0 ? "none" : duration(longest)),
        ]
      : [figure(data.task === "compare" ? "Policies" : "Suggestions", count(rules.length))]),
  ];
  const period = firstMs === undefined || lastMs === undefined ? "The log has no request." : `${spanOf(firstMs, lastMs)} UTC`;
  return h(
    "header",
    { class: "summary" },
    h("p", { class: "brand" }, "Floodgate", h("span", {}, firstMs === undefined ? "" : `a replay of ${daysOf(firstMs, lastMs)}`)),
    h("h1", {}, sentence(data)),
    h("p", { class: "quiet" }, period),
    h("dl", { class: "figures" }, ...figures),
  );
}

function daysOf(firstMs: number, lastMs: number = firstMs): string {
  const [first, last] = [dayOf(firstMs), dayOf(lastMs)];
  return first === last ? first : `${first} to ${last}`;
}

function sentence({ task, requests, rejected = 0, rules, touch = 0 }: ReportData): string {
  if (requests === 0) return "There is no request to replay";
  if (task === "compare")
    return `${plural(rules.length, "policy").replace(/policys$/, "policies")} on the same ${plural(requests, "request")}`;
  if (task === "suggest") {
    const clients = plural(rules[0]?.clients ?? 0, "client");
    return touch === 0 ? `Limits that would touch none of ${clients}` : `Limits that would touch at most ${share(touch)} of ${clients}`;
  }
  if (rejected === 0) return `None of ${plural(requests, "request")} would have been rejected`;
  return `${count(rejected)} of ${plural(requests, "request")} would have been rejected`;
}
