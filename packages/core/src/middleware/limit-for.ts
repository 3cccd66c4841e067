import type { Decision } from "../decide/decision.js";
import { checkStore, type Store } from "../decide/store.js";
import type { Key } from "../limits/key.js";
import type { RequestReader } from "../requests/request-reader.js";
import { retryAfterSeconds } from "../responses/headers.js";
import { detail, type Outcome } from "../responses/outcome.js";
import { parseKeyName } from "../rules/key-source.js";
import type { LimitOptions, Rule, RuleSource } from "../rules/rule.js";
import { conflict, FloodgateError, invalidOption, shown } from "../support/errors.js";
import type { Promised } from "../support/promises.js";
import { type RateLimitControls, withControls } from "./controls.js";
import { RateLimit } from "./rate-limit.js";
import type { RateLimitOptions } from "./rate-limit-options.js";

/** Returns the key that a context counts for, or undefined if it has none. It runs once per check, however many rules use it. */
type ContextKey<Context> = (context: Context) => Promised<Key | undefined>;

/** What limits of contexts say in their own way, because a context has no address, route or header. */
interface ContextLimit<Context, Own extends string> {
  /** What to count by: a function, `"global"`, a name in `keys`, or a list of names. */
  key?: ContextKey<Context> | "global" | Own | `secret:${Own}` | readonly ("global" | Own | `secret:${Own}`)[];
  /** What happens to a context without a key: `"skip"` does not count it, `"reject"` rejects it, and `"error"` fails. Default `"error"`. */
  onMissingKey?: "skip" | "reject" | "error";
  /** Keys that this limit does not count: `{ keys: ["batch"] }`. */
  exempt?: { readonly keys: readonly Key[] };
}

interface ContextRule<Context, Own extends string>
  extends Omit<LimitOptions<Context>, "key" | "onMissingKey" | "exempt" | "ambiguousPath">,
    ContextLimit<Context, Own> {
  /** Unique among the rules: 1 to 128 printable ASCII characters. */
  name: string;
  /** The contexts that the rule counts. Default: every context. */
  match?: (context: Context) => Promised<boolean>;
}

/** The options of `rateLimit` that mean something only for an HTTP request, apart from those of addresses. */
const httpOptions = ["headers", "body", "refundWhen", "clientIp", "ipv6Prefix", "decisionName"] as const;

type HttpOption = (typeof httpOptions)[number] | "ambiguousPath";

export interface LimitForOptions<Context, Own extends string = never>
  extends Omit<RateLimitOptions<Context>, HttpOption | "key" | "keys" | "onMissingKey" | "exempt" | "rules" | "store" | "skip" | "plan">,
    ContextLimit<Context, NoInfer<Own>> {
  /** Where the counts are kept: `memoryStore()`, `redisStore(client)`, or your own. */
  store: Store;
  /** The keys that `key` and rules refer to by name. Each function runs once per check, however many rules use it. */
  keys?: Readonly<Record<Own, ContextKey<Context>>>;
  /** Several limits, checked in one atomic step; or a source of live rules, such as `await fileRules("limits.yaml")`. */
  rules?: readonly ContextRule<Context, NoInfer<Own>>[] | RuleSource;
  /** Contexts that no limit counts: `(job) => job.name === "ping"`. */
  skip?: (context: Context) => Promised<boolean>;
  /** The name of a context's plan, for rules with `plans`; undefined if it has none. Runs once per check. */
  plan?: (context: Context) => Promised<string | undefined>;
}

/** What a limit answers for a context. */
export interface LimitAnswer {
  readonly allowed: boolean;
  /** The most restrictive decision; undefined if no limit applied, or if the context was rejected because it has no key. */
  readonly decision: Decision | undefined;
  /** The decision of each limit that is enforced. */
  readonly all: readonly Decision[];
  /** The time until the same context would pass, in milliseconds: 0 if it is allowed, Infinity if no wait helps. */
  readonly retryAfterMs: number;
  /** How long to hold an allowed context, in milliseconds: above 0 only with `leakyBucket`. */
  readonly delayMs: number;
  /** Charges the real cost that the option `settle` answers for the context. Once, after the work. It never rejects. */
  settle(): Promise<void>;
  /** Gives back what was charged and still counts, once: for work that failed. It never rejects. */
  refund(): Promise<void>;
}

/** A limit of contexts, with its controls. */
export interface LimitFor<Context> extends RateLimitControls {
  /**
   * Counts a context. A rejection is an answer.
   * @throws what a function of the app or a store without `onStoreError` throws.
   */
  check(context: Context): Promise<LimitAnswer>;
  /**
   * Counts a context, and waits for its turn if the policy is a `leakyBucket`.
   * @throws LimitedError `FLOODGATE_LIMITED` if the context is rejected; else as `check`.
   */
  enforce(context: Context): Promise<LimitAnswer>;
}

/** Thrown by `enforce` for a rejected context. Its message says when to try again, and can be shown to the caller. */
export class LimitedError extends FloodgateError {
  override name = "LimitedError";
  /** The most restrictive decision; undefined if the context was rejected because it has no key. */
  readonly decision: Decision | undefined;
  /** The time until the same context would pass, in milliseconds; Infinity if no wait helps. */
  readonly retryAfterMs: number;

  constructor({ decision, retryAfterMs }: Pick<LimitAnswer, "decision"> & { readonly retryAfterMs?: number }) {
    super("FLOODGATE_LIMITED", limitedMessage(decision));
    this.decision = decision;
    this.retryAfterMs = retryAfterMs ?? decision?.retryAfterMs ?? Number.POSITIVE_INFINITY;
  }
}

/** What a rejected caller is told: why, and when to try again. */
export function limitedMessage(decision: Decision | undefined): string {
  const why = decision?.degraded
    ? "The limit cannot be checked at the moment."
    : `Rate limit${decision === undefined ? "" : ` ${shown(decision.name)}`} exceeded.`;
  return `${why} ${detail(decision, decision && retryAfterSeconds(decision))}`;
}

/** Status of work that is refunded. Any other status settles. */
const refunded = 499;
const refundWhen = (status: number): boolean => status === refunded;

/**
 * Makes a limit for anything that is no HTTP request: a call, a job, a message, a tool of an agent.
 *
 *     const limit = limitFor({ limit: 100, window: "1m", key: (job: Job) => job.data.tenant, store: memoryStore() });
 *     await limit.enforce(job);
 *
 * @throws FloodgateError if an option is invalid, or only has a meaning for HTTP requests: when called, not at a check.
 */
export function limitFor<
  Context,
  // TypeScript infers no names if a call gives the context's type, so any name is accepted there.
  const Own extends string = [unknown] extends [Context] ? never : string,
>(options: LimitForOptions<Context, Own>): LimitFor<Context> {
  const where = "limitFor";
  const given = (options ?? {}) as RateLimitOptions<Context, string>;
  for (const option of httpOptions) if (given[option] !== undefined) throw httpOnly(where, `\`${option}\``, option);
  if (given.exempt?.ips !== undefined) throw httpOnly(where, "`exempt.ips`", "exempt");
  const limit = new RateLimit<Context>(
    where,
    // Nobody reads the headers and the body, so they are not made.
    { ...given, onMissingKey: given.onMissingKey ?? "error", headers: false, body: "", refundWhen },
    [],
    contextReader as RequestReader<Context>,
    () => checkStore(where, given.store as Store),
  );

  const check = async (context: Context): Promise<LimitAnswer> => answerOf(await limit.decide(context));
  const enforce = async (context: Context): Promise<LimitAnswer> => {
    const answer = await check(context);
    if (!answer.allowed) throw new LimitedError(answer);
    if (answer.delayMs > 0) await new Promise<void>((go) => limit.waiting.hold(answer.delayMs, go));
    return answer;
  };
  return withControls({ check, enforce }, limit);
}

function answerOf({ action, decision, decisions, checks, delayMs, afterResponse }: Outcome): LimitAnswer {
  const allowed = action === "pass";
  return {
    allowed,
    decision,
    all: decisions.filter((_, i) => checks[i]?.shadow !== true),
    retryAfterMs: allowed ? 0 : (decision?.retryAfterMs ?? Number.POSITIVE_INFINITY),
    delayMs,
    settle: async () => void (await afterResponse?.(200)),
    refund: async () => void (await afterResponse?.(refunded)),
  };
}

const nothing = (): undefined => undefined;

/** Reads any context. Each check is counted, so each has an identity of its own. */
const contextReader: RequestReader<unknown> = {
  identity: () => ({}),
  method: () => "GET",
  path: () => "/",
  header: nothing,
  remoteAddress: nothing,
  clientIp: nothing,
  trustsProxy: () => true,
  route: nothing,
  checkRule,
};

/** @throws FloodgateError if a rule needs something that only an HTTP request has. */
function checkRule<Context>(where: string, { key, match, ...rule }: Partial<Rule<Context, string>>): void {
  if (key === undefined) {
    const message = `${where}: \`key\` is missing, and there is no client address to count by. Write key: (context) => context.userId, or key: "global".`;
    throw invalidOption(message, ["key"]);
  }
  for (const name of [key].flat()) {
    if (typeof name === "string" && /^(ip|route|(header|descriptor):.*)$/s.test(parseKeyName(name).name))
      throw httpOnly(where, `key: ${shown(name)}`, "key");
  }
  if (match !== undefined && typeof match !== "function") throw httpOnly(where, `\`match\` with ${shown(match)}`, "match");
  if (rule.onMissingKey === "ip") throw httpOnly(where, 'onMissingKey: "ip"', "onMissingKey");
  if (rule.refundWhen !== refundWhen) throw httpOnly(where, "`refundWhen`", "refundWhen");
  if (rule.ambiguousPath !== undefined) throw httpOnly(where, "`ambiguousPath`", "ambiguousPath");
  if (rule.exempt?.ips !== undefined) throw httpOnly(where, "`exempt.ips`", "exempt");
}

function httpOnly(where: string, what: string, option: string): FloodgateError {
  const instead = {
    key: ' Write a function, "global", or a name that you define in `keys`.',
    match: ' Write a function: match: (context) => context.name === "search".',
    onMissingKey: ' Write "skip", "reject" or "error".',
    refundWhen: " Call refund() of the answer.",
  }[option];
  const message = `${where}: ${what} is about HTTP requests, and this limit counts something else.${instead ?? " Leave it out."}`;
  return conflict(message, [option]);
}
