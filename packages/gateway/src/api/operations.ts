import type { Decision, Limiter, LimiterKey } from "@floodgate/core";
import { leaveSlots, type Outcome, type Promised, renewSlots } from "@floodgate/core/adapter";
import type { GatewayRequest } from "../service/request.js";
import type { Service } from "../service/service.js";
import { checked } from "./body.js";
import { Problem } from "./problems.js";
import { type Decided, issueReceipt, parseReceipt } from "./receipts.js";
import * as schemas from "./schemas.js";

/** What is answered, and its status if it is not 200 (with a value) or 204 (without one). */
export interface Result {
  readonly value?: object;
  readonly status?: 429;
  readonly headers?: Readonly<Record<string, string>>;
}

const examples = {
  single: '{ "rule": "api", "key": "user:42" }',
  several: '{ "checks": [{ "rule": "api", "key": "user:42" }, { "rule": "emails", "key": "acme", "cost": 3 }] }',
  request: '{ "request": { "method": "GET", "path": "/", "ip": "203.0.113.9" } }',
  receipt: '{ "receipt": "fb1...", "cost": 7 }',
  block: '{ "rule": "api", "key": "user:42", "for": "1h" }',
} as const;

/** Who acts, in events. */
const by = "JSON API";

/** What the API does, each with the body of its request. */
export class Operations {
  readonly #service: Service;

  constructor(service: Service) {
    this.#service = service;
  }

  async check(body: unknown): Promise<Result> {
    if (has(body, "request")) {
      const { request, ...options } = checked(schemas.checkForms.request, body, examples.request);
      const { action, status, decision, checks, decisions } = await this.#service.limit.decide(requestOf(request));
      leaveSlots(decisions);
      const all = checks.map((check, i): Decided => ({ check, decision: decisions[i] as Decision, key: undefined }));
      // A rule may reject a request that has no key (`onMissingKey: reject`), without a decision.
      return this.#answer({ allowed: action === "pass", decision, all, degraded: status === 503 }, options);
    }
    const several = has(body, "checks");
    const one = several ? undefined : checked(schemas.checkForms.single, body, examples.single);
    const { checks: named, ...options } =
      one === undefined ? checked(schemas.checkForms.several, body, examples.several) : { ...one, checks: [one] };
    const { allowed, decision, checks, decisions } = await this.#service.limit.check(
      named.map(({ rule, key, cost, plan }) => ({ name: rule, key, cost, plan })),
    );
    const all = checks.flatMap((check, i): Decided[] => {
      const made = decisions[i];
      return check === undefined || made === undefined ? [] : [{ check, decision: made, key: named[i]?.key }];
    });
    return this.#answer({ allowed, decision, all, degraded: false }, options);
  }

  settle(body: unknown): Promise<Result> {
    const { receipt, cost } = checked(schemas.settleBody, body, examples.receipt);
    return this.#changed(receipt, (limiter, key, part) => limiter.settle(key, part, cost));
  }

  refund(body: unknown): Promise<Result> {
    const { receipt } = checked(schemas.receiptBody, body, '{ "receipt": "fb1..." }');
    return this.#changed(receipt, async (limiter, key, part) => 0 - (await limiter.refund(key, part)));
  }

  async renew(body: unknown): Promise<Result> {
    const { receipt } = checked(schemas.receiptBody, body, '{ "receipt": "fb1..." }');
    const parts = await this.#each(receipt, renewSlots);
    const slots = parts.flatMap(({ rule, done }) => (done === undefined ? [] : [{ rule, allowed: done }]));
    if (slots.length === 0) {
      throw new Problem(
        409,
        "no-slots",
        "The receipt holds no slots. Only rules with `algorithm: concurrency` are renewed. Other units come back, or stay charged, by themselves.",
      );
    }
    const value: schemas.RenewalAnswer = { allowed: slots.every(({ allowed }) => allowed), slots };
    return { value };
  }

  async status(body: unknown): Promise<Result> {
    const { rule, key } = checked(schemas.targetBody, body, examples.single);
    const limiter = this.#limiter(rule);
    const { atMs, decision, states, block = null, ban = null } = await limiter.keyState(key);
    const value: schemas.StatusAnswer = {
      rule,
      key: limiter.keyText(key),
      atMs,
      ...numbersOf(decision),
      states: states.map(({ plan = null, decision, state }) => ({ plan, ...numbersOf(decision), state })),
      block,
      ban,
    };
    return { value };
  }

  reset(body: unknown): Promise<Result> {
    const { rule, key } = checked(schemas.targetBody, body, examples.single);
    return this.#act({ rule }, "reset", (limiter) => limiter.reset(key, { by }));
  }

  block(body: unknown): Promise<Result> {
    const { rule, key, for: duration } = checked(schemas.blockBody, body, examples.block);
    return this.#act({ rule, for: duration }, "blocked", (limiter) => limiter.block(key, duration as never, { by }));
  }

  unblock(body: unknown): Promise<Result> {
    const { rule, key } = checked(schemas.targetBody, body, examples.single);
    return this.#act({ rule }, "unblocked", (limiter) => limiter.unblock(key, { by }));
  }

  /** Changes the state of a key, and logs it. */
  async #act(
    logged: { readonly rule: string; readonly for?: string },
    done: string,
    act: (limiter: Limiter) => Promised<unknown>,
  ): Promise<Result> {
    await act(this.#limiter(logged.rule));
    this.#service.log.info(logged, `The JSON API has ${done} a key`);
    return {};
  }

  #answer(
    made: CheckResult,
    { status, receipt = true }: { readonly status?: 429 | undefined; readonly receipt?: boolean | undefined },
  ): Result {
    const { allowed, decision, all, degraded } = made;
    const value: schemas.CheckAnswer = {
      allowed,
      retryAfterMs: decision === undefined ? (allowed ? 0 : null) : waitOf(decision),
      delayMs: Math.max(0, ...all.filter(({ check }) => check.shadow !== true).map(({ decision }) => decision.delayMs)),
      degraded: degraded || all.some(({ decision }) => decision.degraded),
      decisions: all.map(({ check, decision }) => ({
        rule: check.rule.name,
        key: check.key,
        ...numbersOf(decision),
        delayMs: decision.delayMs,
        cost: decision.cost,
        shadow: check.shadow === true,
        degraded: decision.degraded,
      })),
      receipt: allowed && receipt && this.#hasSecret ? issueReceipt(this.#service.limit.limiters, all) : null,
    };
    if (allowed || status === undefined) return { value };
    const { retryAfterMs } = value;
    const headers = retryAfterMs === null ? {} : { "Retry-After": `${Math.max(1, Math.ceil(retryAfterMs / 1000))}` };
    return { value, status, headers };
  }

  async #changed(receipt: string, change: PartUse<number>): Promise<Result> {
    const value: schemas.UnitsAnswer = { units: (await this.#each(receipt, change)).map(({ rule, done }) => ({ rule, units: done })) };
    return { value };
  }

  /** Uses each part of a receipt whose rule is still in force. A part that fails does not keep the others from being used. */
  async #each<T>(receipt: string, use: PartUse<T>): Promise<{ readonly rule: string; readonly done: T }[]> {
    if (!this.#hasSecret) {
      throw new Problem(
        409,
        "no-secret-file",
        "This server counts in Redis, which several instances share, but has no secret that they all know, so it has signed no receipts. Set secretFile to the same file on each instance: --secret-file /run/secrets/floodgate.",
      );
    }
    const used = await Promise.allSettled(
      parseReceipt(receipt).map(async ([rule, key, part]) => ({ rule, done: await use(this.#limiter(rule), key, part) })),
    );
    const done = used.flatMap((part) => (part.status === "fulfilled" ? [part.value] : []));
    const faults = used.flatMap((part) => (part.status === "rejected" ? [part.reason] : []));
    // A fault of the store says that the same receipt may be sent again.
    const fault = faults.find((one) => !isOfOtherRule(one)) ?? (done.length === 0 ? faults[0] : undefined);
    if (fault !== undefined) throw fault;
    return done;
  }

  /** Without a shared secret, receipts of a memory store are signed by a secret of this process. */
  get #hasSecret(): boolean {
    return this.#service.redis === undefined || this.#service.secrets.receipts !== undefined;
  }

  /** @throws Problem 404 */
  #limiter(rule: string): Limiter {
    const { limiters } = this.#service.limit;
    const limiter = limiters.get(rule);
    if (limiter !== undefined) return limiter;
    const known = [...limiters.keys()].slice(0, 20).join(", ");
    throw new Problem(404, "FLOODGATE_UNKNOWN_RULE", `There is no rule ${JSON.stringify(rule)}. The rules are ${known}.`);
  }
}

/** Whether a part of a receipt failed because its rule is no longer in force, or has another algorithm or other times now. */
function isOfOtherRule({ code }: { readonly code?: unknown }): boolean {
  return code === "FLOODGATE_UNKNOWN_RULE" || code === "FLOODGATE_INVALID_RECEIPT";
}

type PartUse<T> = (limiter: Limiter, key: LimiterKey, receipt: string) => Promised<T>;

/** What was decided, by names or by a request. */
interface CheckResult {
  readonly allowed: boolean;
  readonly decision: Outcome["decision"];
  readonly all: readonly Decided[];
  readonly degraded: boolean;
}

function has(body: unknown, name: string): boolean {
  return typeof body === "object" && body !== null && Object.hasOwn(body, name);
}

function waitOf({ retryAfterMs }: Decision): number | null {
  return retryAfterMs === Number.POSITIVE_INFINITY ? null : retryAfterMs;
}

function numbersOf(decision: Decision): Pick<schemas.StatusAnswer, "allowed" | "limit" | "remaining" | "retryAfterMs" | "resetAfterMs"> {
  const { allowed, limit, remaining, resetAfterMs } = decision;
  return { allowed, limit, remaining, retryAfterMs: waitOf(decision), resetAfterMs };
}

/** A request as a caller of the API describes it. The caller is trusted. */
function requestOf({ method, path: target, host, headers = {}, ip: clientIp }: schemas.RequestBody): GatewayRequest {
  const own = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  if (host !== undefined) own.set("host", host);
  return { method, target, host, remoteAddress: undefined, clientIp, fromTrustedPeer: true, header: (name) => own.get(name) };
}
