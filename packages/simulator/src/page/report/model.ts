import { count } from "@floodgate/pages/dom";
import type { Grid, GridPoint, PolicyWords, ReportData, ReportRule } from "../../report/contract.js";

export type { Burst, Grid, GridPoint, ReportClient, ReportData, ReportRule, Timeline, Verdict } from "../../report/contract.js";

/** What is chosen: a rule, and for each rule one of the limits of its grid. */
export class Choice {
  readonly data: ReportData;
  readonly #points: number[];
  readonly #listeners: (() => void)[] = [];
  #rule = 0;

  constructor(data: ReportData) {
    this.data = data;
    this.#points = data.rules.map(({ grid }) => grid?.own ?? 0);
  }

  get rule(): ReportRule | undefined {
    return this.data.rules[this.#rule];
  }

  /** The number of the chosen limit in the rule's grid. */
  get pointNumber(): number {
    return this.#points[this.#rule] as number;
  }

  get point(): GridPoint | undefined {
    return this.rule?.grid?.points[this.pointNumber];
  }

  chooseRule(rule: number): void {
    this.#rule = rule;
    this.#tell();
  }

  choosePoint(point: number): void {
    const last = (this.rule?.grid?.points.length ?? 1) - 1;
    this.#points[this.#rule] = Math.max(0, Math.min(last, point));
    this.#tell();
  }

  /** Calls back now, and whenever something else is chosen. */
  follow(listener: () => void): void {
    this.#listeners.push(listener);
    listener();
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
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
