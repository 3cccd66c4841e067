import * as assert from "node:assert/strict";
import type { Decision, Policy } from "@floodgate/core";
import { asCharge, type Cells, type Charge, createLimit, type Limit, nothingReserved, settleIn } from "@floodgate/core/store";
import type { RedisServer, Reply } from "@floodgate/test-servers";
import { argumentsOf } from "../src/algorithms.js";
import { heldKey } from "../src/keys.js";
import { general } from "../src/script.js";

/** A step of the script and its key; policies count from 0. */
export type Step = readonly [key: string, act: "c" | "j" | "p" | "i" | "s" | "d", policy: number, ...numbers: number[]];

/** An instant later than any state's birth, so that only the algorithm decides whether a charge still counts. */
export const whicheverState: number = Number.MAX_SAFE_INTEGER;

/** Runs the script directly on a server. */
export class Script {
  readonly #server: RedisServer;
  /** How far the server's clock is ahead of this process's, which may be wrong. */
  readonly #aheadMs: number;

  private constructor(server: RedisServer, aheadMs: number) {
    this.#server = server;
    this.#aheadMs = aheadMs;
  }

  static async load(server: RedisServer): Promise<Script> {
    await server.command("SCRIPT", "LOAD", general.source);
    const [seconds] = (await server.command("TIME")) as string[];
    return new Script(server, Number(seconds) * 1000 - Date.now());
  }

  /**
   * @param clockMs the injected time; undefined to use the server's.
   * @param holdMs how long requests under each of the policies hold their units. Default: as long as the policy does.
   */
  async run(
    clockMs: number | undefined,
    policies: readonly Policy[],
    steps: readonly Step[],
    holdMs: readonly (number | undefined)[] = [],
  ): Promise<TwinReply> {
    const head = [Number.MAX_SAFE_INTEGER, clockMs ?? "", 1, "", policies.length];
    const aboutMs = clockMs ?? Date.now() + this.#aheadMs;
    const keys = steps.map(([key]) => key);
    for (const { number, parameters, holds, edgesAt } of policies.map((policy, i) => argumentsOf(policy, holdMs[i]))) {
      head.push(...holds, number, ...parameters, ...(edgesAt?.(aboutMs) ?? []));
      if (holds.length > 0) keys.push(...steps.map(([key]) => heldKey(key)));
    }
    const args = steps.flatMap<string | number>(([, act, policy, ...numbers]) => {
      if (act === "d") return [act, 1];
      // A charge is settled without a receipt.
      return [act, policy + 1, ...numbers, ...(act === "s" ? [""] : [])];
    });
    return new TwinReply(await this.#server.command("EVALSHA", general.sha, keys.length, ...keys, ...head, ...args));
  }
}

/** A decision without the fields that the script does not return. */
export type Told = Pick<Decision, "allowed" | "remaining" | "retryAfterMs" | "resetAfterMs" | "delayMs" | "cost" | "atMs">;

/** The script returns the time until held units come back as a delay. */
export function toldOf({ allowed, remaining, retryAfterMs, resetAfterMs, delayMs, cost, atMs, heldUntilMs }: Decision, nowMs = 0): Told {
  return { allowed, remaining, retryAfterMs, resetAfterMs, delayMs: heldUntilMs === undefined ? delayMs : heldUntilMs - nowMs, cost, atMs };
}

/** Reads a reply of the script in order: see lua/batch.lua. */
export class TwinReply {
  readonly serverMs: number;
  readonly #list: readonly Reply[];
  #at = 1;

  constructor(reply: Reply) {
    this.#list = reply as readonly Reply[];
    this.serverMs = Math.floor((this.#list[0] as number) / 1000);
  }

  get ended(): boolean {
    return this.#at === this.#list.length;
  }

  next(): Reply {
    return this.#list[this.#at++] as Reply;
  }

  number(): number {
    const next = this.next();
    // Integers that clients misread are texts: see lua/prelude.lua.
    const isText = typeof next === "string" && Number(next) > 2 ** 53 - 64;
    assert.ok(isText || typeof next === "number", `not a number: ${next}`);
    return Number(next);
  }

  /** A decision, and the state that follows a rejection. */
  told(nowMs: number, cost: number, stateAlways = false): readonly [Told, Cells] {
    const first = this.number();
    const plain = { retryAfterMs: 0, delayMs: 0, cost, atMs: nowMs };
    if (first >= 0) return [{ ...plain, allowed: true, remaining: first, resetAfterMs: this.number() }, new Float64Array()];
    const allowed = first === -1;
    const remaining = this.number();
    const retryMs = this.number();
    const told = {
      allowed,
      remaining,
      retryAfterMs: retryMs < 0 ? Number.POSITIVE_INFINITY : retryMs,
      resetAfterMs: this.number(),
      delayMs: this.number(),
      cost,
      atMs: nowMs + this.number(),
    };
    return [told, Float64Array.from({ length: allowed && !stateAlways ? 0 : this.number() }, () => this.number())];
  }
}

/** One act under one of a key's policies. `settle` selects a recent charge: 0 is the last. */
export type Act = { readonly plan: number } & (
  | { readonly consume: number; readonly times?: number }
  | { readonly peek: "brief" | "whole" }
  | { readonly settle: number; readonly cost: number }
  | { readonly charge: number }
);

/** Keeps a key in Redis and the same state in core's cells, and asserts that they always agree. */
export class Twin {
  readonly #server: RedisServer;
  readonly #script: Script;
  readonly #key: string;
  readonly #limits: readonly Limit[];
  #cells: Cells = new Float64Array(3);
  readonly #charges: Charge[] = [];

  constructor(server: RedisServer, script: Script, key: string, plans: readonly Policy[]) {
    this.#server = server;
    this.#script = script;
    this.#key = key;
    const limits = plans.map((policy) => createLimit("twin", policy));
    // Requests may hold their units for a shorter time, or charge them at once.
    const shorter = limits.flatMap((limit) => {
      const { algorithm, holdMs } = limit.policy;
      if (holdMs === undefined || algorithm === "concurrency") return [];
      return [0, Math.ceil(holdMs / 2)].map((holdMs): Limit => ({ ...limit, holdMs }));
    });
    this.#limits = [...limits, ...shorter];
  }

  /** Plays acts at one time in one run of the script and on the cells, and compares all answers and the resulting states. */
  async play(clockMs: number | undefined, acts: readonly Act[]): Promise<void> {
    const charges = acts.map((act) => ("settle" in act ? this.#charge(act.settle) : "charge" in act ? nothingReserved : undefined));
    const costOf = (act: Act): number => ("charge" in act ? act.charge : "cost" in act ? act.cost : 0);
    const steps = acts.map((act, i): Step => {
      const plan = act.plan % this.#limits.length;
      const limit = this.#limits[plan] as Limit;
      const charge = charges[i];
      if ("consume" in act) return joins(act, limit) ? [this.#key, "j", plan, act.consume, act.times] : [this.#key, "c", plan, act.consume];
      if (charge === undefined) return [this.#key, isWhole(act) ? "i" : "p", plan];
      const { cost, atMs, heldUntilMs } = charge;
      return [this.#key, "s", plan, heldUntilMs === undefined ? cost : -cost, heldUntilMs ?? atMs, whicheverState, costOf(act)];
    });
    const plans = this.#limits.map(({ policy }) => policy);
    const holdMs = this.#limits.map((limit) => limit.holdMs);
    const [answer, ofState, ofHeld, time] = await Promise.all([
      this.#script.run(clockMs, plans, steps, holdMs),
      this.#server.command("PEXPIRETIME", this.#key),
      this.#server.command("PEXPIRETIME", heldKey(this.#key)),
      this.#server.command("TIME"),
    ]);
    assert.ok(ofState !== -1 && ofHeld !== -1, "a key without an expiry");
    const nowMs = clockMs ?? answer.serverMs;
    let wrote = clockMs === undefined;
    for (const [i, act] of acts.entries()) {
      const limit = this.#limits[act.plan % this.#limits.length] as Limit;
      const charge = charges[i];
      if ("consume" in act && joins(act, limit)) {
        wrote = this.#compareRow(limit, nowMs, act.consume, act.times, answer) || wrote;
      } else if (isWhole(act)) {
        this.#compareWhole(limit, nowMs, answer);
      } else if (charge === undefined) {
        const decision = this.#decide(limit, nowMs, "consume" in act ? act.consume : 1, "consume" in act);
        this.#compare(limit, nowMs, decision, answer.told(nowMs, decision.cost));
        wrote ||= decision.allowed && "consume" in act;
      } else {
        this.#makeRoom(limit);
        const change = settleIn(limit, this.#cells, 0, nowMs, charge, costOf(act), 0);
        assert.equal(answer.number() / answer.number(), change, `${charge.cost} at ${charge.atMs} settled to ${costOf(act)}`);
        wrote ||= change !== 0;
      }
    }
    assert.ok(answer.ended);
    const [seconds, micros] = (time as string[]).map(Number) as [number, number];
    const expiryMs = Math.max(ofState as number, ofHeld as number);
    this.#checkExpiry(nowMs, answer.serverMs, expiryMs, seconds * 1000 + Math.floor(micros / 1000), wrote);
  }

  /** An inspected key: core decides the same on the state that is shown. */
  #compareWhole(limit: Limit, nowMs: number, answer: TwinReply): void {
    const [told, state] = answer.told(nowMs, 1, true);
    assert.deepEqual(told, toldOf(this.#decide(limit, nowMs, 1, false)));
    assert.deepEqual(seen(limit, state, nowMs, 1), told, "what the state says that is shown");
    assert.deepEqual([answer.number(), answer.number(), answer.number(), answer.number()], [0, 0, 0, 0], "the block and the ban");
  }

  /** Equal requests in a row: the script tells the state that the first one finds, and how many it charged. */
  #compareRow(limit: Limit, nowMs: number, cost: number, times: number, answer: TwinReply): boolean {
    const [told, state] = answer.told(nowMs, cost, true);
    assert.deepEqual(told, toldOf(this.#decide(limit, nowMs, cost, false)));
    assert.deepEqual(seen(limit, state, nowMs, cost), told, "what the state says that was handed over");
    const decisions = Array.from({ length: times }, () => this.#decide(limit, nowMs, cost, true));
    const charged = decisions.filter(({ allowed }) => allowed).length;
    assert.equal(answer.number(), charged, `how many of ${times} requests for ${cost} were charged`);
    for (const decision of decisions) {
      assert.deepEqual(
        toldOf(limit.algorithm.decide(limit, state, 0, nowMs, cost, true)),
        toldOf(decision),
        "decided on the state that was handed over",
      );
    }
    return charged > 0;
  }

  #charge(back: number): Charge | undefined {
    return this.#charges[this.#charges.length - 1 - (back % Math.max(this.#charges.length, 1))];
  }

  #decide(limit: Limit, nowMs: number, cost: number, commit: boolean): Decision {
    this.#makeRoom(limit);
    const decision = limit.algorithm.decide(limit, this.#cells, 0, nowMs, cost, commit);
    if (commit && decision.allowed) this.#charges.push({ ...asCharge(decision), state: 0 });
    return decision;
  }

  #makeRoom(limit: Limit): void {
    const size = limit.algorithm.size(limit.policy, this.#cells, 0);
    if (size <= this.#cells.length) return;
    const larger = new Float64Array(2 * size);
    larger.set(this.#cells);
    this.#cells = larger;
  }

  #compare(limit: Limit, nowMs: number, decision: Decision, [told, state]: readonly [Told, Cells]): void {
    assert.deepEqual(told, toldOf(decision, nowMs));
    if (decision.allowed) return;
    const isLog = limit.policy.algorithm === "sliding-window-log";
    if ((isLog && limit.policy.countRejected) || limit.policy.holdMs !== undefined) {
      assert.equal(state.length, 0, "a rejection that counts, or whose units may come back, is told again by nobody else");
      return;
    }
    if (!isLog) assert.equal(state.length, limit.algorithm.size(limit.policy, state, 0));
    assert.deepEqual(seen(limit, state, nowMs, decision.cost), toldOf(decision), "what the state says that was handed over");
    for (const share of [0.25, 0.5, 0.75, 1]) {
      const laterMs = nowMs + Math.floor(share * decision.resetAfterMs);
      for (const other of this.#limits) {
        for (const cost of [decision.cost, 1, Math.ceil(other.policy.quota / 2), other.policy.quota]) {
          const remembered = seen(other, state, laterMs, cost);
          const actual = toldOf(this.#decide(other, laterMs, cost, false));
          if (!isLog) assert.deepEqual(remembered, actual);
          else if (!remembered.allowed) assert.equal(actual.allowed, false, "a state that was handed over rejects too much");
          if (other === limit && cost === decision.cost) {
            assert.deepEqual([remembered.allowed, remembered.retryAfterMs], [actual.allowed, actual.retryAfterMs]);
          }
        }
      }
    }
  }

  /** @param wrote whether the key's expiry was set at this time: with a moving injected clock, older expiries differ. */
  #checkExpiry(nowMs: number, serverMs: number, expiryMs: number, latestMs: number, wrote: boolean): void {
    for (const limit of this.#limits) {
      const { resetAfterMs } = this.#decide(limit, nowMs, 1, false);
      if (expiryMs === -2) assert.ok(resetAfterMs === 0 || serverMs + resetAfterMs <= latestMs, "a state is gone");
      else if (wrote) assert.ok(expiryMs >= serverMs + resetAfterMs, `expires at ${expiryMs} of ${serverMs + resetAfterMs}`);
    }
  }
}

/** Whether equal requests of a limit are decided in one go. */
function joins(act: { readonly times?: number }, { algorithm }: Limit): act is { readonly times: number } {
  return act.times !== undefined && !algorithm.grows && !algorithm.delays;
}

function isWhole(act: Act): boolean {
  return "peek" in act && act.peek === "whole";
}

function seen(limit: Limit, state: Cells, nowMs: number, cost: number): Told {
  return toldOf(limit.algorithm.decide(limit, state, 0, nowMs, cost, false));
}
