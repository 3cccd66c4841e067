import type { Policy } from "@floodgate/core";
import { algorithmOf, allAlgorithms } from "@floodgate/core/store";

/** The Lua file of an algorithm, in lua/ under the same name: the twin of core's. */
export interface Twin {
  readonly name: string;
  /** The fields of a policy that it computes with, in the order in which they are sent. */
  readonly parameters: readonly string[];
  /** Whether the edges of windows follow the parameters. */
  readonly edges?: unknown;
  /** Core's cells, in the order in which the twin returns a state. */
  readonly cells: readonly string[];
}

const general: readonly Twin[] = allAlgorithms();

/** The sliding window counter with one bucket is the default policy, and has a second twin without loops and tables. */
const twoCounters: Twin = {
  ...(general.find(({ name }) => name === "sliding-window-counter") as Twin),
  name: "two-counters",
  parameters: ["limit", "windowMs"],
};

/** All twins. The script refers to them by their index here, from 1. */
export const twins: readonly Twin[] = [...general, twoCounters];

/** A policy as script arguments: its algorithm's number and its parameters. */
export interface AlgorithmArguments {
  readonly number: number;
  readonly parameters: readonly string[];
  /** What stands before them for a policy whose units are held: see lua/batch.lua. */
  readonly holds: readonly string[];
  /** The edges of a calendar window around a time, which follow the parameters. Undefined for other policies. */
  readonly edgesAt: ((nowMs: number) => readonly string[]) | undefined;
}

/** Converts a policy to script arguments. @param holdMs how long a request holds its units, if the policy holds them. */
export function argumentsOf(policy: Policy, holdMs?: number): AlgorithmArguments {
  const isTwoCounters = policy.algorithm === "sliding-window-counter" && policy.buckets === 1;
  const { holdMs: longestMs, ...plain } = policy;
  const isHeld = longestMs !== undefined && policy.algorithm !== "concurrency";
  const algorithm = algorithmOf((isHeld ? plain : policy) as Policy);
  const { name } = isTwoCounters ? twoCounters : algorithm;
  const index = twins.findIndex((twin) => twin.name === name);
  const fields = policy as unknown as Readonly<Record<string, number | boolean>>;
  const windowMs = policy.algorithm === "fixed-window" ? policy.windowMs : algorithm.edges === undefined ? -1 : 0;
  return {
    number: index + 1,
    holds: isHeld ? ["h", holdMs ?? longestMs, longestMs, windowMs].map(String) : [],
    parameters: (twins[index] as Twin).parameters.map((parameter) => textOf(fields[parameter])),
    edgesAt: algorithm.edges && ((nowMs) => algorithm.edges?.(policy, nowMs).map(String) ?? []),
  };
}

/** A parameter as an argument: 1 and 0 for true and false, -1 for Infinity. */
function textOf(value: number | boolean | undefined): string {
  return String(value === Number.POSITIVE_INFINITY ? -1 : Number(value));
}

/** A policy's `stateKind` as it appears in keys, its words cut to initials: `swc-60000-1`. Unique for each kind. */
export function kindOf({ stateKind }: Pick<Policy, "stateKind">): string {
  return stateKind.replace(/([a-z])[a-z]*-?/g, "$1").replaceAll(" ", "-");
}
