import type { Key, LimiterKey, StateView } from "@floodgate/core";

// The JSON that the API takes and answers, as types. `schemas.ts` checks it.

/** A rule by its name, and what to count. */
export interface NamedBody {
  readonly rule: string;
  readonly key: Key;
  readonly cost?: number | undefined;
  readonly plan?: string | undefined;
}

export interface AnswerOptions {
  readonly status?: 429 | undefined;
  readonly receipt?: boolean | undefined;
}

export interface SingleCheck extends NamedBody, AnswerOptions {}

export interface SeveralChecks extends AnswerOptions {
  readonly checks: readonly NamedBody[];
}

export interface RequestCheck extends AnswerOptions {
  readonly request: RequestBody;
}

/** A request that the caller describes. */
export interface RequestBody {
  readonly method: string;
  readonly path: string;
  readonly host?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly ip?: string | undefined;
}

export interface Refund {
  readonly receipt: string;
}

export interface Settlement extends Refund {
  readonly cost: number;
}

export interface Target {
  readonly rule: string;
  readonly key: LimiterKey;
}

export interface Block extends Target {
  readonly for: string;
}

/** What every decision says. */
export interface Numbers {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  readonly retryAfterMs: number | null;
  readonly resetAfterMs: number;
}

export interface DecisionAnswer extends Numbers {
  readonly rule: string;
  readonly key: string;
  readonly delayMs: number;
  readonly cost: number;
  readonly shadow: boolean;
  readonly degraded: boolean;
}

export interface CheckAnswer {
  readonly allowed: boolean;
  readonly retryAfterMs: number | null;
  readonly delayMs: number;
  readonly degraded: boolean;
  readonly decisions: readonly DecisionAnswer[];
  readonly receipt: string | null;
}

export interface UnitsAnswer {
  readonly units: readonly { readonly rule: string; readonly units: number }[];
}

export interface StatusAnswer extends Numbers {
  readonly rule: string;
  readonly key: string;
  readonly atMs: number;
  readonly states: readonly (Numbers & { readonly plan: string | null; readonly state: StateView })[];
  readonly block: { readonly untilMs: number } | null;
  readonly ban: { readonly untilMs: number } | null;
}

export interface ProblemAnswer {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  readonly errors?: readonly { readonly at: string; readonly message: string }[] | undefined;
}
