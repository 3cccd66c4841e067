import { count } from "@floodgate/pages/format";
import { useState } from "preact/hooks";
import type { Grid, GridPoint, PolicyWords, ReportData, ReportRule } from "../../report/contract.js";

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
