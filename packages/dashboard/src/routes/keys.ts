import { FloodgateError, type KeyState, type LimiterKey } from "@floodgate/core";
import { type GrantChange, type InventoryLimit, keyOfText, policyText } from "@floodgate/core/rules";
import { type InUse, listed } from "../collect/in-use.js";
import type { Report } from "../collect/report.js";
import type { KeyAnswer, KeyRuleState } from "../contract.js";
import type { Share } from "../share/share.js";
import { textOf } from "../text.js";
import { invalidBody, type JsonBody, Refusal } from "./json.js";
import { blockMs, grantOf, keyQuery, typedKey } from "./key-body.js";
import type { KeyLabels } from "./key-labels.js";
import { rejectionsOf } from "./overview.js";

/** A key under one limit. */
interface Target {
  readonly limit: InventoryLimit;
  readonly key: LimiterKey;
}

/** A key that was asked for, under one rule or under all. */
interface Search {
  readonly rule: string | undefined;
  /** The key as it may be shown. */
  readonly shown: string;
  /** The key as a limit counts it; undefined if it is no key of that limit. */
  keyOf(limit: InventoryLimit): LimiterKey | undefined;
}

export type ActionName = "reset" | "block" | "unblock" | "grant" | "revoke";

type Act = (body: JsonBody, by: string) => Promise<KeyAnswer>;

/** Looks keys up, and acts on them, in the stores of this process's limits. */
export class Keys {
  readonly #inUse: InUse;
  readonly #figures: Share;
  readonly #labels: KeyLabels;

  constructor(inUse: InUse, figures: Share, labels: KeyLabels) {
    this.#inUse = inUse;
    this.#figures = figures;
    this.#labels = labels;
  }

  /** @throws Refusal */
  async lookUp(body: JsonBody): Promise<KeyAnswer> {
    return this.#answer(this.#searchOf(body));
  }

  /** By their names. Each may throw a Refusal. */
  readonly actions: Readonly<Record<ActionName, Act>> = {
    reset: (body, by) => this.#act(body, ({ limit, key }) => limit.limiter.reset(key, { by })),
    block: async (body, by) => {
      const forMs = blockMs(body);
      return this.#act(body, ({ limit, key }) => limit.limiter.block(key, `${BigInt(forMs)}ms`, { by }));
    },
    unblock: (body, by) => this.#act(body, ({ limit, key }) => limit.limiter.unblock(key, { by })),
    grant: async (body, by) => {
      const { plan, untilMs } = grantOf(body);
      return this.#change(body, { plan, until: new Date(untilMs).toISOString() }, by);
    },
    revoke: (body, by) => this.#change(body, undefined, by),
  };

  #change(body: JsonBody, grant: GrantChange["grant"], by: string): Promise<KeyAnswer> {
    return this.#act(body, async ({ limit, key }) => {
      const { name, plans, source, limiter } = limit;
      if (source?.grant === undefined || plans === undefined) {
        const why = plans === undefined ? "it has no plans" : "the app does not follow rules in Redis (redisRules)";
        throw new Refusal(400, "invalid", `Nothing can be granted under ${JSON.stringify(name)}: ${why}.`);
      }
      if (grant !== undefined && !plans.has(grant.plan)) {
        throw invalidBody(`\`plan\` must be one of ${[...plans.keys()].join(", ")}`);
      }
      await source.grant({ rule: name, key: limiter.keyText(key), grant, by, textOf: (written) => limiter.keyText(written) });
    });
  }

  async #act(body: JsonBody, act: (target: Target) => unknown): Promise<KeyAnswer> {
    const search = this.#searchOf(body);
    if (search.rule === undefined) throw invalidBody("`rule` must be a rule's name");
    try {
      for (const target of this.#targets(search)) await act(target);
    } catch (error) {
      if (error instanceof Refusal) throw error;
      if (error instanceof FloodgateError && badRequests.includes(error.code)) throw new Refusal(400, error.code, error.message);
      throw new Refusal(502, "store", `The store failed: ${textOf(error)}`);
    }
    // A grant makes new rules, and with them new limits.
    return this.#answer(search);
  }

  async #answer(search: Search): Promise<KeyAnswer> {
    const targets = this.#targets(search);
    const { reports } = await this.#figures.read();
    return { key: search.shown, states: await Promise.all(targets.map((target) => stateOf(target, reports))) };
  }

  /** @throws Refusal */
  #searchOf(body: JsonBody): Search {
    const { key, id, rule } = keyQuery(body);
    if (id === undefined) {
      const shown = this.#labels.shown(typeof key === "string" ? key : `(${key?.join(",")})`);
      return { rule, shown, keyOf: (limit) => typedKey(key as string, limit.rule?.key) };
    }
    const text = this.#textOf(id);
    const known = keyOfText(text);
    // Another rule may count the same text as another key.
    const keyOf: Search["keyOf"] = (limit) => (known !== undefined && keyTextOf(limit, known) === text ? known : undefined);
    return { rule, shown: this.#labels.shown(text), keyOf };
  }

  /**
   * The limits that can count the key, each with the key as it counts it.
   * @throws Refusal
   */
  #targets({ rule, keyOf }: Search): Target[] {
    this.#inUse.refresh();
    const limits = listed(this.#inUse.limits.filter(({ name }) => rule === undefined || name === rule));
    if (rule !== undefined && limits.length === 0) throw new Refusal(404, "unknown", `This process has no rule ${JSON.stringify(rule)}.`);
    const targets = limits.flatMap((limit): Target[] => {
      const key = keyOf(limit);
      return key !== undefined && keyTextOf(limit, key) !== undefined ? [{ limit, key }] : [];
    });
    if (rule !== undefined && targets.length === 0) {
      const words = limits[0]?.rule?.key;
      throw new Refusal(400, "invalid", `${JSON.stringify(rule)} counts by ${words ?? "another key"}, so this is no key of it.`);
    }
    return targets;
  }

  /** @throws Refusal */
  #textOf(id: string): string {
    for (const text of this.#figures.knownKeys()) if (this.#labels.idOf(text) === id) return text;
    throw new Refusal(404, "unknown", "This key is no longer among the heaviest. Type it to look it up.");
  }
}

/** Errors that another question avoids. */
const badRequests: readonly string[] = ["FLOODGATE_NO_POLICY", "FLOODGATE_INVALID_KEY"];

/** The text of a key as a limit counts it; undefined if it is no key of that limit. */
function keyTextOf({ limiter }: InventoryLimit, key: LimiterKey): string | undefined {
  try {
    return limiter.keyText(key);
  } catch {
    return undefined;
  }
}

async function stateOf({ limit, key }: Target, reports: readonly Report[]): Promise<KeyRuleState> {
  const { name, shadow, limiter, plans, source } = limit;
  const text = limiter.keyText(key);
  const grant = limit.grantOf?.(text);
  const base = {
    rule: name,
    mode: shadow ? ("shadow" as const) : ("enforce" as const),
    shared: limiter.store.dataId !== undefined,
    rejections: rejectionsOf(reports, name, text),
    grant: grant && { plan: grant.plan, untilMs: grant.untilMs },
    mayGrant: source?.grant && plans && [...plans.keys()],
  };
  try {
    return { ...base, ...shownState(await limiter.keyState(key), grant?.plan) };
  } catch (error) {
    return { ...base, failed: textOf(error) };
  }
}

/** @param plan the granted plan, under which the next request is decided. */
function shownState(
  { atMs, decision: own, states, block, ban }: KeyState,
  plan: string | undefined,
): Omit<KeyRuleState, "rule" | "mode" | "shared"> {
  const { decision } = states.find((state) => plan !== undefined && state.plan === plan) ?? { decision: own };
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs, delayMs } = decision;
  return {
    atMs,
    decision: { allowed, limit, remaining, retryAfterMs: finite(retryAfterMs), resetAfterMs: finite(resetAfterMs), delayMs },
    states: states.map(({ plan, policy, state }) => ({ plan, policy: policyText(policy), state })),
    block: block && { untilMs: block.untilMs },
    ban: ban && { untilMs: ban.untilMs },
  };
}

/** JSON has no Infinity. */
function finite(ms: number): number | null {
  return Number.isFinite(ms) ? ms : null;
}
