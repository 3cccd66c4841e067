import { count, language, nbsp } from "@floodgate/pages/format";
import { useState } from "preact/hooks";
import type { PolicyWords } from "../../policies/options.js";
import { percent as percentage } from "../../print/format.js";
import type { Grid, GridPoint, ReportData, ReportRule } from "../../report/contract.js";

export type { Burst, Grid, ReportClient, ReportData, ReportRule, Timeline, Verdict } from "../../report/contract.js";

/** What is chosen: a rule, and for each rule one of the limits of its grid. */
export interface Choice {
  readonly data: ReportData;
  readonly rule: ReportRule | undefined;
  /** The number of the chosen limit in the rule's grid. */
  readonly pointNumber: number;
  readonly point: GridPoint | undefined;
  chooseRule(rule: number): void;
  choosePoint(point: number): void;
}

export function useChoice(data: ReportData): Choice {
  const [chosen, chooseRule] = useState(0);
  const [points, setPoints] = useState(data.rules.map(({ grid }) => grid?.own ?? 0));
  const rule = data.rules[chosen];
  const pointNumber = points[chosen] ?? 0;
  const choosePoint = (point: number): void => {
    const last = (rule?.grid?.points.length ?? 1) - 1;
    setPoints(points.map((each, i) => (i === chosen ? Math.max(0, Math.min(last, point)) : each)));
  };
  return { data, rule, pointNumber, point: rule?.grid?.points[pointNumber], chooseRule, choosePoint };
}

/** The number of the least limit of a grid that touches at most a share of the clients. */
export function leastTouching({ points }: Grid, clients: number, share: number): number {
  const found = points.findIndex(({ clientsLimited }) => clientsLimited <= clients * share + 1e-9);
  return found < 0 ? points.length - 1 : found;
}

const defaults: PolicyWords = { style: "smooth", countRejected: false, buckets: 1, strict: false };

/** A policy with another limit, as one writes it in a rules file. */
export function policyText({ policy, option }: Grid, limit: number): string {
  const words = Object.entries({ ...policy, [option]: limit }).filter(([name, value]) => defaults[name] !== value);
  return `policy: { ${words.map(([name, value]) => `${name}: ${value}`).join(", ")} }`;
}

export function limitText({ policy, option }: Grid, limit: number): string {
  const figure = count(limit);
  if (option === "limit") return `${figure} per ${policy["window"]}`;
  return option === "burst" ? `a burst of ${figure}` : `a capacity of ${figure}`;
}

/** How shares and moments are written. Times are UTC: a log's own zone is not known. */

export const percent = (part: number, whole: number): string => percentage(part, whole).replaceAll(" ", nbsp);

/** A share that somebody has chosen: `0.1 %`. */
export const share = (of: number): string => `${Number((100 * of).toPrecision(6))}${nbsp}%`;

const format = (options: Intl.DateTimeFormatOptions): ((ms: number) => string) => {
  const made = new Intl.DateTimeFormat(language, { ...options, hourCycle: "h23", timeZone: "UTC" });
  return (ms) => made.format(ms);
};
const hour = { hour: "2-digit", minute: "2-digit" } as const;
const minute = format(hour);
const shortDay = format({ day: "numeric", month: "short" });
const month = format({ month: "short", year: "numeric" });

export const dayOf: (ms: number) => string = format({ day: "numeric", month: "short", year: "numeric" });
export const timeOf: (ms: number) => string = format({ ...hour, second: "2-digit" });
export const momentOf = (ms: number): string => `${dayOf(ms)}, ${timeOf(ms)}`;

/** From one moment to another; the day only once if it is the same. */
export function spanOf(fromMs: number, toMs: number, stepMs = 1000): string {
  const time = stepMs % 60_000 === 0 ? minute : timeOf;
  if (stepMs % 86_400_000 === 0) return dayOf(fromMs);
  const sameDay = dayOf(fromMs) === dayOf(toMs);
  return `${dayOf(fromMs)}, ${time(fromMs)} to ${sameDay ? "" : `${dayOf(toMs)}, `}${time(toMs)}`;
}

/** Labels of a time axis: with days where a day begins. */
export function axisTime(ms: number, stepMs: number): string {
  if (stepMs >= 28 * 86_400_000) return month(ms);
  if (stepMs >= 86_400_000 || ms % 86_400_000 === 0) return shortDay(ms);
  return (stepMs % 60_000 === 0 ? minute : timeOf)(ms);
}
