import { hasSlots } from "../algorithms/registry.js";
import { type Decision, moreRestrictive, mostRestrictive, shownWaitMs } from "../decide/decision.js";
import type { RequestContext } from "../requests/request-context.js";
import { invalidOption, shown } from "../support/errors.js";
import { oneOf } from "../support/options.js";

/**
 * `"standard"`: the newest IETF draft (draft-ietf-httpapi-ratelimit-headers-11); `"draft-7"`, `"draft-6"`: older ones;
 * `"legacy"`: `X-RateLimit-*`, with the reset in epoch seconds.
 */
export type HeaderFormat = "standard" | "draft-7" | "draft-6" | "legacy";

/** One format, a draft together with the legacy headers, or none. */
export type HeadersOption = HeaderFormat | readonly [Exclude<HeaderFormat, "legacy">, "legacy"] | false;

export interface Header {
  readonly name: string;
  readonly value: string;
  /**
   * Of a list, whose items are appended to those of an earlier middleware: its name in lower case, which frameworks need no time to convert.
   * Missing if the value replaces an earlier one.
   */
  readonly list?: string;
}

export interface Report {
  readonly decisions: readonly Decision[];
  /** The most restrictive decision, for formats with a single one. */
  readonly reported: Decision;
  /** The request. Other middlewares may have decided it before. */
  readonly context: Pick<RequestContext, "previous">;
  /** The decision that rejects the request. The headers need not show it. */
  readonly rejectedBy: Decision | undefined;
}

type Writer = (report: Report) => Header[];

const seconds = (ms: number): number => Math.ceil(ms / 1000);

/** Structured-field integers have at most 15 digits (RFC 9651 §3.3.1). */
const largest = 999_999_999_999_999;
const integer = (value: number): number => Math.min(value, largest);

/**
 * The time to show: until the retry, or without one until the reset. A reset is shown as at most the window: a sliding counter's reset can
 * be further away, which confuses clients that also read the window.
 */
function waitMs(decision: Decision): number {
  const { resetAfterMs, policy } = decision;
  const retryAfterMs = shownWaitMs(decision);
  if (retryAfterMs > 0 && retryAfterMs !== Number.POSITIVE_INFINITY) return retryAfterMs;
  return Math.min(resetAfterMs, policy.spanMs);
}

interface Items {
  readonly policy: string;
  /** Up to the number of remaining units. */
  readonly state: string;
}

/** Memoised by policy and name. */
const items = new WeakMap<Decision["policy"], Map<string, Items>>();

function itemsOf({ name, policy }: Decision): Items {
  let byName = items.get(policy);
  if (byName === undefined) {
    byName = new Map();
    items.set(policy, byName);
  }
  let known = byName.get(name);
  if (known === undefined) {
    const { quota, spanMs } = policy;
    // A structured-field string (RFC 9651 §3.3.3); names are printable ASCII.
    const item = `"${name.replace(/["\\]/g, "\\$&")}"`;
    const span = hasSlots(policy) ? ';qu="concurrent-requests"' : spanMs < 1000 ? "" : `;w=${seconds(spanMs)}`;
    known = { policy: `${item};q=${integer(quota)}${span}`, state: `${item};r=` };
    byName.set(name, known);
  }
  return known;
}

const oldPolicies = (decisions: readonly Decision[]): string =>
  decisions.map(({ policy }) => `${integer(policy.quota)};w=${seconds(policy.spanMs)}`).join(", ");

/**
 * For formats with a single decision, whose headers replace those of earlier middlewares: shows the most restrictive decision so far.
 */
function single(write: Writer): Writer {
  return (report) => {
    let reported = report.reported;
    for (let { previous } = report.context; previous !== undefined; previous = previous.previous) {
      if (previous.reported !== undefined && moreRestrictive(previous.reported, reported)) reported = previous.reported;
    }
    return write({ ...report, reported });
  };
}

/** One entry per format, because the drafts still change. */
const writers: Readonly<Record<HeaderFormat, Writer>> = {
  standard: ({ decisions }) => {
    let policies = "";
    let states = "";
    for (const decision of decisions) {
      // Without the helpers below, because each response comes here.
      const { remaining, retryAfterMs, resetAfterMs, policy } = decision;
      const known = itemsOf(decision);
      policies += policies === "" ? known.policy : `, ${known.policy}`;
      if (states !== "") states += ", ";
      states += known.state + Math.min(remaining, largest);
      // Nobody knows when a slot is given back.
      if (retryAfterMs === Number.POSITIVE_INFINITY || policy.algorithm === "concurrency") continue;
      states += `;t=${Math.ceil((retryAfterMs > 0 ? retryAfterMs : Math.min(resetAfterMs, policy.spanMs)) / 1000)}`;
    }
    return [
      { name: "RateLimit-Policy", value: policies, list: "ratelimit-policy" },
      { name: "RateLimit", value: states, list: "ratelimit" },
    ];
  },
  "draft-7": single(({ decisions, reported }) => [
    { name: "RateLimit-Policy", value: oldPolicies(decisions), list: "ratelimit-policy" },
    {
      name: "RateLimit",
      value: `limit=${integer(reported.limit)}, remaining=${integer(reported.remaining)}, reset=${seconds(waitMs(reported))}`,
    },
  ]),
  "draft-6": single(({ decisions, reported }) => [
    { name: "RateLimit-Policy", value: oldPolicies(decisions), list: "ratelimit-policy" },
    { name: "RateLimit-Limit", value: `${integer(reported.limit)}` },
    { name: "RateLimit-Remaining", value: `${integer(reported.remaining)}` },
    { name: "RateLimit-Reset", value: `${seconds(waitMs(reported))}` },
  ]),
  legacy: single(({ reported, rejectedBy }) => {
    const headers = [
      { name: "X-RateLimit-Limit", value: `${reported.limit}` },
      { name: "X-RateLimit-Remaining", value: `${reported.remaining}` },
      { name: "X-RateLimit-Reset", value: `${seconds(reported.atMs + waitMs(reported))}` },
    ];
    const retryAfter = rejectedBy && retryAfterSeconds(rejectedBy);
    if (retryAfter !== undefined) headers.push({ name: "X-RateLimit-Retry-After", value: `${retryAfter}` });
    return headers;
  }),
};

/** Whole seconds, rounded up, at least 1; undefined if no wait helps. */
export function retryAfterSeconds(decision: Decision): number | undefined {
  if (decision.retryAfterMs === Number.POSITIVE_INFINITY) return undefined;
  return Math.max(1, Math.ceil(shownWaitMs(decision) / 1000));
}

/** A rejection is no answer to keep. */
export const noStore: Header = { name: "Cache-Control", value: "no-store" };

/** Whether a header may be one of a limit. Frameworks that drop the headers of an error's response keep those. */
export function isLimitHeader(lowerCaseName: string, value: unknown): boolean {
  return /^(x-)?ratelimit(-|$)|^retry-after$/.test(lowerCaseName) || (lowerCaseName === "cache-control" && value === noStore.value);
}

/**
 * The response headers of a decision, as middlewares set them, for an app that answers requests itself. With `Retry-After` if it rejects.
 *
 *     return new Response("Slow down", { status: 429, headers: headersOf(decision) });
 *
 * @param decisions one decision, or those of several limits: `all` of `consumeAll`. None gives no headers.
 * @param format as the option `headers` of a middleware. Default `"standard"`.
 * @throws FloodgateError `FLOODGATE_INVALID_OPTION` if there is no such format, or it was given something else than decisions.
 */
export function headersOf(decisions: Decision | readonly Decision[], format?: HeadersOption): Record<string, string> {
  const write = headerWriter("headersOf", format);
  const all = [decisions].flat();
  for (const decision of all) checkDecision(decision);
  if (all.length === 0) return {};
  const reported = mostRestrictive(all);
  const rejectedBy = reported.allowed ? undefined : reported;
  // The numbers of a degraded decision are unknown.
  const known = all.filter(({ degraded }) => !degraded);
  const report = { decisions: known, reported: mostRestrictive(known), context: { previous: undefined }, rejectedBy };
  const written = known.length > 0 ? write?.(report) : undefined;
  const headers = Object.fromEntries((written ?? []).map(({ name, value }) => [name, value]));
  if (rejectedBy === undefined) return headers;
  const retryAfter = retryAfterSeconds(rejectedBy);
  return { ...headers, ...(retryAfter !== undefined && { "Retry-After": `${retryAfter}` }), [noStore.name]: noStore.value };
}

/** A decision that has been JSON is no decision any more: JSON has no Infinity. */
function checkDecision(decision: Partial<Decision> | undefined): void {
  const { name, limit, remaining, retryAfterMs, resetAfterMs, atMs, policy } = decision ?? {};
  const numbers = [limit, remaining, retryAfterMs, resetAfterMs, atMs, policy?.quota, policy?.spanMs];
  if (typeof name === "string" && numbers.every((number) => typeof number === "number")) return;
  throw invalidOption(
    `headersOf takes a decision or an array of decisions, but was given ${shown(decision)}. Write headersOf(limiter.consume(key)), or headersOf(answer.all) for several limits.`,
  );
}

/** The function that writes the headers in the chosen formats; undefined for `false`. */
export function headerWriter(where: string, option: HeadersOption | undefined): Writer | undefined {
  if (option === undefined) return writers.standard;
  if (option === false) return undefined;
  const formats = Object.keys(writers) as HeaderFormat[];
  const formatOf = (given: unknown) => {
    if (given === true || (typeof given === "string" && /^draft-([89]|1\d)$/.test(given))) {
      throw invalidOption(`${where}: \`headers\` has no format ${shown(given)}. Write headers: "standard", the newest draft.`, ["headers"]);
    }
    return oneOf(where, "headers", given, formats);
  };
  if (!Array.isArray(option)) return writers[formatOf(option)];
  const [draft, legacy] = option.map(formatOf);
  if (option.length !== 2 || draft === undefined || draft === "legacy" || legacy !== "legacy") {
    throw invalidOption(
      `${where}: \`headers\` takes one format, one draft with "legacy", or false, but was ${shown(option.join(", "))}. Write headers: ["standard", "legacy"].`,
    );
  }
  return (report) => [...writers[draft](report), ...writers.legacy(report)];
}
