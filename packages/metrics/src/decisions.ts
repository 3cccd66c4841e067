import { type Decision, type DecisionEvent, type FloodgateEvent, observe } from "@floodgate/core";
import {
  checkOptions,
  type DecisionResult,
  describePolicy,
  flag,
  functionOrNothing,
  invalidOption,
  isUnchecked,
  maskKey,
  type RequestEvent,
  type RequestResult,
  requestOfEvent,
  resultOf,
  uncheckedRules,
  usedOf,
  wholeNumber,
} from "@floodgate/core/rules";

/** What one rule said of a request. Durations are in milliseconds, times in milliseconds since the epoch. */
export interface RuleLine {
  readonly rule: string;
  /** Masked, unless `showKeys` is true. Left out for a rule that would have let a rejected request pass. */
  readonly key?: string;
  readonly result: DecisionResult;
  readonly policy: string;
  readonly cost: number;
  readonly limit: number;
  /** Left out if `onStoreError` decided without counts, as `remaining` and `resetAfterMs` then are. */
  readonly used?: number;
  readonly remaining?: number;
  /** `null` if no wait helps. */
  readonly retryAfterMs: number | null;
  readonly resetAfterMs?: number;
  /** Until when the key is blocked or banned. */
  readonly blockedUntilMs?: number;
  /** When the held units come back by themselves. */
  readonly heldUntilMs?: number;
}

/** What became of a request, and why. */
export interface DecisionLine {
  readonly time: string;
  readonly result: RequestResult;
  readonly rejected: boolean;
  /** The rule that decided. */
  readonly rule?: string;
  readonly retryAfterMs?: number | null;
  readonly method?: string;
  /** The pattern of the route, if the framework knows it where the limit is mounted. */
  readonly route?: string;
  readonly traceId?: string;
  /** The result of an earlier middleware, which this one corrects. */
  readonly replaces?: RequestResult;
  /** The rules that were checked, in their order. */
  readonly rules: readonly RuleLine[];
  /** How many lines were left out since the last one, because there were too many or the log was slow. */
  readonly dropped?: number;
}

export interface DecisionLogOptions {
  /** The share of requests that pass and are logged, from 0 to 1. Default 0.01. */
  passed?: number;
  /** How many rejected requests are logged in a second. Default 100. */
  rejectedPerSecond?: number;
  /** Whether keys are logged in full. Default false: `us…42`. */
  showKeys?: boolean;
  /** The trace of the request at hand. Default: that of its header `traceparent`. */
  traceId?: () => string | undefined;
}

/** A writable, which gets a line of JSON, or a function, which gets an object. */
export type DecisionLogTarget = { write(line: string): unknown; readonly writableNeedDrain?: boolean } | ((line: DecisionLine) => unknown);

/** The used part of a `Logger` of `@opentelemetry/api-logs`. */
export interface LogEmitter {
  // biome-ignore lint/suspicious/noExplicitAny: the record of any version of the package
  emit(record: any): void;
}

/**
 * A target of `decisionLog` that emits OpenTelemetry log records. A record belongs to the span that is active when the request is decided.
 *
 *     decisionLog(openTelemetryLogs(logs.getLogger("floodgate")));
 *
 * @throws FloodgateError unless it is given a logger.
 */
export function openTelemetryLogs(logger: LogEmitter): (line: DecisionLine) => void {
  if (typeof logger?.emit !== "function")
    throw invalidOption(
      'openTelemetryLogs takes a logger. Write openTelemetryLogs(logs.getLogger("floodgate")), with logs of @opentelemetry/api-logs.',
    );
  return (line) => {
    const { time, result, rejected, rule, method, route, traceId, retryAfterMs, replaces, rules, dropped } = line;
    const what = [method, route].filter((part) => part !== undefined).join(" ");
    const attributes = {
      "floodgate.result": result,
      "floodgate.rejected": rejected,
      "floodgate.rule": rule,
      "floodgate.retry_after_ms": retryAfterMs ?? undefined,
      "floodgate.replaces": replaces,
      "floodgate.dropped": dropped,
      "floodgate.rules": rules,
      "floodgate.trace_id": traceId,
      "http.request.method": method,
      "http.route": route,
    };
    logger.emit({
      eventName: "floodgate.decision",
      timestamp: new Date(time),
      severityNumber: rejected ? warn : info,
      severityText: rejected ? "WARN" : "INFO",
      body: `${what === "" ? "request" : what}: ${result}${rule === undefined ? "" : ` by ${rule}`}`,
      attributes: Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined)),
    });
  };
}

/** The numbers of severities in OpenTelemetry. */
const [info, warn] = [9, 13];

/**
 * Logs why requests were rejected or passed, a line for each: all rejected ones up to a rate, and a share of those that pass.
 *
 *     const stop = decisionLog(process.stdout);
 *
 * @returns a function that stops it.
 * @throws FloodgateError if the target or an option is invalid.
 */
export function decisionLog(to: DecisionLogTarget, options: DecisionLogOptions = {}): () => void {
  checkOptions(
    "decisionLog",
    options,
    ["passed", "rejectedPerSecond", "showKeys", "traceId"],
    "decisionLog(process.stdout, { passed: 0.1 })",
  );
  const { passed = 0.01, rejectedPerSecond = 100, showKeys = false, traceId } = options;
  wholeNumber("decisionLog", "rejectedPerSecond", rejectedPerSecond, 0);
  flag("decisionLog", "showKeys", showKeys);
  functionOrNothing("decisionLog", "traceId", traceId, "() => trace.getActiveSpan()?.spanContext().traceId");
  if (typeof passed !== "number" || !(passed >= 0 && passed <= 1))
    throw invalidOption("decisionLog: `passed` must be a share from 0 to 1. Write passed: 0.01.");
  if (typeof to !== "function" && typeof to?.write !== "function")
    throw invalidOption("decisionLog takes a writable or a function. Write decisionLog(process.stdout).");
  let second = 0;
  let inSecond = 0;
  let dropped = 0;
  return eachRequest((event, decided) => {
    if (!event.rejected && Math.random() >= passed) return undefined;
    const now = Math.floor(Date.now() / 1000);
    if (now !== second) inSecond = 0;
    second = now;
    const isTooMany = event.rejected && inSecond++ >= rejectedPerSecond;
    if (isTooMany || (typeof to !== "function" && to.writableNeedDrain === true)) {
      dropped++;
      return undefined;
    }
    const line = { ...lineOf(event, decided, showKeys, traceId), ...(dropped > 0 && { dropped }) };
    dropped = 0;
    return typeof to === "function" ? to(line) : void to.write(`${JSON.stringify(line)}\n`);
  });
}

export interface ExplainHeaderOptions {
  /** Whether keys are shown in full. Default false: `us...42`. */
  showKeys?: boolean;
}

/** The most rules that a header names beside those that were checked. */
const maxUnchecked = 20;

/**
 * Answers callers whom `admits` lets in with the header `RateLimit-Explain`: what each rule said of the request, or why it was not checked.
 *
 *     const stop = explainHeader((req) => req.user?.isSupport === true);
 *
 * @param admits gets what `key` functions get: the request of Express, Fastify or Node, the context of Koa or Hono, `{ request, context }` of
 * fetch. Only `true` lets the caller in.
 * @returns a function that stops it.
 * @throws FloodgateError if `admits` is no function, or an option is invalid.
 */
// biome-ignore lint/suspicious/noExplicitAny: requests of several frameworks
export function explainHeader(admits: (request: any) => boolean, options: ExplainHeaderOptions = {}): () => void {
  checkOptions("explainHeader", options, ["showKeys"], "explainHeader(isSupport, { showKeys: true })");
  const { showKeys = false } = options;
  flag("explainHeader", "showKeys", showKeys);
  if (typeof admits !== "function")
    throw invalidOption("explainHeader takes a function. Write explainHeader((req) => req.user?.isSupport === true).");
  return eachRequest((event, decided) => {
    const context = requestOfEvent();
    if (context === undefined || admits(context.request) !== true) return;
    const { rules, result, rule } = lineOf(event, decided, showKeys);
    const items = rules.map((line) => {
      const { key, policy, cost, limit, used, remaining, retryAfterMs } = line;
      const counts = used === undefined ? "" : `used=${used};remaining=${remaining};`;
      const numbers = `cost=${cost};limit=${limit};${counts}${retryParameter(retryAfterMs)}`;
      return `${text(line.rule)};result=${line.result}${line.rule === rule ? ";decides" : ""}${key === undefined ? "" : `;key=${text(key)}`};policy=${text(policy)};${numbers}`;
    });
    if (!rules.some((line) => line.rule === rule)) items.unshift(`${text(rule ?? "")};result=${result};decides`);
    const others = uncheckedRules(context).filter(({ name }) => name !== rule);
    items.push(...others.slice(0, maxUnchecked).map(({ name, because }) => `${text(name)};not=${because}`));
    if (others.length > maxUnchecked) items.push(`"";more=${others.length - maxUnchecked}`);
    context.extraHeader = { name: "RateLimit-Explain", value: items.join(", "), list: "ratelimit-explain" };
  });
}

/** A parameter of a structured field: whole seconds, as `Retry-After` has them. */
const retryParameter = (ms: number | null): string => (ms === null ? "retry=never" : `retry=${Math.ceil(ms / 1000)}`);

/** A string of a structured field, which is ASCII. */
const text = (value: string): string =>
  `"${value
    .replaceAll("…", "...")
    .replace(/[^ -~]/g, "?")
    .replace(/["\\]/g, "\\$&")}"`;

/** Calls back for each request, with the decision events since the last request. */
function eachRequest(onRequest: (event: RequestEvent, decided: readonly DecisionEvent[]) => unknown): () => void {
  // The decision events of a request come together, right before the request event. The array is not shortened, because that costs more than
  // the decision: events of earlier requests may follow.
  const decided: DecisionEvent[] = [];
  let count = 0;
  return observe((event: FloodgateEvent) => {
    if ("storeMs" in event) decided[count++] = event;
    if (event.type !== "request") return undefined;
    count = 0;
    return onRequest(event, decided);
  });
}

function lineOf(
  event: RequestEvent,
  decided: readonly DecisionEvent[],
  showKeys: boolean,
  traceId?: () => string | undefined,
): DecisionLine {
  const { result, rejected, name: rule, decision, replaces } = event;
  const context = requestOfEvent();
  const trace = traceId === undefined ? traceIdIn(context?.header("traceparent")) : traceId();
  const route = context?.route;
  return {
    time: new Date().toISOString(),
    result,
    rejected,
    ...(rule !== undefined && { rule }),
    ...(rejected && decision !== undefined && { retryAfterMs: finite(decision.retryAfterMs) }),
    ...(context !== undefined && { method: context.method }),
    ...(route !== undefined && { route }),
    ...(trace !== undefined && { traceId: trace }),
    ...(replaces !== undefined && { replaces: replaces.result }),
    rules: (decision?.decisions ?? []).map((made) => ruleLineOf(made as Decision, decided, showKeys)),
  };
}

/** The id in a header `traceparent`. Clients write it, so any other text stays out of the log. */
function traceIdIn(header = ""): string | undefined {
  return /^[\da-f]{2}-(?!0{32})([\da-f]{32})-/.exec(header)?.[1];
}

function ruleLineOf(decision: Decision, decided: readonly DecisionEvent[], showKeys: boolean): RuleLine {
  const event = decided.find((event) => event.decision === decision);
  const { name, policy, cost, limit, remaining, retryAfterMs, resetAfterMs, blocked, heldUntilMs } = decision;
  const isCounted = !isUnchecked(decision);
  return {
    rule: name,
    ...(event !== undefined && { key: showKeys ? event.key : maskKey(event.key) }),
    result: resultOf({ decision, shadow: event?.shadow === true }),
    policy: describePolicy(policy),
    ...{ cost, limit, ...(isCounted && { used: usedOf(decision), remaining }), retryAfterMs: finite(retryAfterMs) },
    ...(isCounted && { resetAfterMs }),
    ...(blocked !== undefined && { blockedUntilMs: blocked.untilMs }),
    ...(heldUntilMs !== undefined && { heldUntilMs }),
  };
}

/** JSON has no infinity. */
const finite = (ms: number): number | null => (Number.isFinite(ms) ? ms : null);
