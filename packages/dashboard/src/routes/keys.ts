import { FloodgateError, type KeyState, type LimiterKey } from "@floodgate/core";
import type { InventoryLimit } from "@floodgate/core/rules";
import { listed, policyWords } from "../collect/in-use.js";
import type { KeyAnswer, KeyRuleState } from "../contract.js";
import { textOf } from "../text.js";
import { Refusal } from "./json.js";
import { blockMs, type KeyNames, keyOfText, keyQuery, typedKey } from "./key-text.js";

type Body = Record<string, unknown>;

/** A key under one limit. */
interface Target {
  readonly limit: InventoryLimit;
  readonly key: LimiterKey;
}

/** Looks keys up, and acts on them, in the stores of this process's limits. */
export class Keys {
  readonly #limits: () => readonly InventoryLimit[];
  readonly #names: KeyNames;
  /** The keys that have ids: those of the sketches. */
  readonly #known: () => Iterable<string>;

  constructor(limits: () => readonly InventoryLimit[], names: KeyNames, known: () => Iterable<string>) {
    this.#limits = limits;
    this.#names = names;
    this.#known = known;
  }

  /** @throws Refusal */
  async lookUp(body: Body): Promise<KeyAnswer> {
    return this.#answer(body, this.#targets(body));
  }

  /** @throws Refusal */
  reset(body: Body, by: string): Promise<KeyAnswer> {
    return this.#act(body, ({ limit, key }) => limit.limiter.reset(key, { by }));
  }

  /** @throws Refusal */
  async block(body: Body, by: string): Promise<KeyAnswer> {
    const forMs = blockMs(body);
    return this.#act(body, ({ limit, key }) => limit.limiter.block(key, `${BigInt(forMs)}ms`, { by }));
  }

  /** @throws Refusal */
  unblock(body: Body, by: string): Promise<KeyAnswer> {
    return this.#act(body, ({ limit, key }) => limit.limiter.unblock(key, { by }));
  }

  async #act(body: Body, act: (target: Target) => unknown): Promise<KeyAnswer> {
    if (keyQuery(body).rule === undefined) throw new Refusal(400, "invalid", "Invalid body: `rule` must be a rule's name.");
    const targets = this.#targets(body);
    try {
      for (const target of targets) await act(target);
    } catch (error) {
      if (error instanceof FloodgateError && error.code === "FLOODGATE_NO_POLICY") throw new Refusal(400, error.code, error.message);
      throw new Refusal(502, "store", `The store failed: ${textOf(error)}`);
    }
    return this.#answer(body, targets);
  }

  async #answer(body: Body, targets: readonly Target[]): Promise<KeyAnswer> {
    const { key, id } = keyQuery(body);
    const text = id === undefined ? undefined : this.#textOf(id);
    const shown = text ?? (typeof key === "string" ? key : `(${key?.join(",")})`);
    return { key: this.#names.shown(shown), states: await Promise.all(targets.map(stateOf)) };
  }

  /**
   * The limits that can count the key, each with the key as it counts it.
   * @throws Refusal
   */
  #targets(body: Body): Target[] {
    const { key, id, rule } = keyQuery(body);
    const limits = listed(this.#limits().filter(({ name }) => rule === undefined || name === rule));
    if (rule !== undefined && limits.length === 0) throw new Refusal(404, "unknown", `This process has no rule ${JSON.stringify(rule)}.`);
    const targets = limits.flatMap((limit): Target[] => {
      const found = id === undefined ? typedKey(key as string, limit.rule?.key) : this.#keyOfId(id, limit);
      return found !== undefined && isKey(limit, found) ? [{ limit, key: found }] : [];
    });
    if (rule !== undefined && targets.length === 0) {
      const words = limits[0]?.rule?.key;
      throw new Refusal(400, "invalid", `${JSON.stringify(rule)} counts by ${words ?? "another key"}, so this is no key of it.`);
    }
    return targets;
  }

  #keyOfId(id: string, { limiter }: InventoryLimit): LimiterKey | undefined {
    const text = this.#textOf(id);
    const key = keyOfText(text);
    try {
      // Another rule may count the same text as another key.
      return key !== undefined && limiter.keyText(key) === text ? key : undefined;
    } catch {
      return undefined;
    }
  }

  /** @throws Refusal */
  #textOf(id: string): string {
    for (const text of this.#known()) if (this.#names.idOf(text) === id) return text;
    throw new Refusal(404, "unknown", "This key is no longer among the heaviest. Type it to look it up.");
  }
}

function isKey({ limiter }: InventoryLimit, key: LimiterKey): boolean {
  try {
    limiter.keyText(key);
    return true;
  } catch {
    return false;
  }
}

async function stateOf({ limit, key }: Target): Promise<KeyRuleState> {
  const { name, shadow, limiter } = limit;
  const base = { rule: name, mode: shadow ? ("shadow" as const) : ("enforce" as const), shared: limiter.store.dataId !== undefined };
  try {
    return { ...base, ...shownState(await limiter.keyState(key)) };
  } catch (error) {
    return { ...base, failed: textOf(error) };
  }
}

function shownState({ atMs, decision, states, block, ban }: KeyState): Omit<KeyRuleState, "rule" | "mode" | "shared"> {
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs, delayMs } = decision;
  return {
    atMs,
    decision: { allowed, limit, remaining, retryAfterMs: finite(retryAfterMs), resetAfterMs: finite(resetAfterMs), delayMs },
    states: states.map(({ plan, policy, state }) => ({
      ...(plan !== undefined && { plan }),
      policy: policyWords(policy),
      algorithm: policy.algorithm,
      state,
    })),
    ...(block !== undefined && { block: { untilMs: block.untilMs } }),
    ...(ban !== undefined && { ban: { untilMs: ban.untilMs } }),
  };
}

/** JSON has no Infinity. */
function finite(ms: number): number | null {
  return Number.isFinite(ms) ? ms : null;
}
