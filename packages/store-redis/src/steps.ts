import {
  type Blocked,
  type BlockKind,
  type Cells,
  type Charge,
  type Decision,
  type Inspection,
  inspectIn,
  passesAll,
} from "@floodgate/core/store";
import type { GeneralBatch } from "./batch.js";
import { markOf } from "./keys.js";
import type { LeanRequest } from "./lean.js";
import type { KeyedCheck, KnownLimit } from "./limits.js";
import { type DecisionReply, explains, type Reply } from "./reply.js";
import { Step } from "./step.js";

const largest = Number.MAX_SAFE_INTEGER;

/** Charges one limit. It is its own check, because an object for each request would cost more than its fields. */
export class Consume extends Step<Decision, Decision | DecisionReply> {
  readonly known: KnownLimit;
  readonly key: string;
  readonly cost: number;
  /** The equal ones of its batch, with itself. Undefined if there are no others. */
  equals: EqualConsumes | undefined = undefined;

  constructor(known: KnownLimit, key: string, redisKey: string, cost: number, timeoutMs: number) {
    super(redisKey, timeoutMs);
    this.known = known;
    this.key = key;
    this.cost = cost;
  }

  override get lean(): LeanRequest | undefined {
    return this.known.scripts.request([this], false);
  }

  get #isFirst(): boolean {
    return this.equals === undefined || this.equals.first === this;
  }

  write(batch: GeneralBatch): void {
    if (!this.#isFirst) return;
    const { known, cost, equals } = this;
    batch.state(this.redisKey, known.policy);
    if (equals === undefined) batch.consume(known.policy, cost);
    else batch.args.push("j", batch.policy(known.policy), String(cost), String(equals.count));
  }

  override read(reply: Reply): void {
    if (this.#isFirst) super.read(reply);
    else this.problem = this.equals?.first.problem;
  }

  protected readAnswer(reply: Reply): Decision | DecisionReply {
    const { equals } = this;
    if (equals !== undefined) {
      equals.decided = reply.equals(this.known, this.cost, equals.count, this.firstKey);
      return equals.decided[0] as DecisionReply;
    }
    return reply.passed(this.known, this.cost, this.firstKey) ?? reply.decision(this.known, this.cost, false, this.firstKey);
  }

  protected override accept(read: Decision | DecisionReply, reply: Reply): Decision {
    const answer = this.equals === undefined ? read : (this.equals.decided.shift() as DecisionReply);
    if (!("unblocked" in answer)) {
      // It passes without a wait, as nearly all do.
      this.known.denied?.doubt(this.known.suffix, this.key);
      return answer;
    }
    this.remember(this, answer, reply);
    return answer.decision;
  }
}

/** Equal consumes of one key in one batch. The script decides them in one go, so a hot key costs it the same whatever their number. */
interface EqualConsumes {
  /** The one that is written, and reads the answer. */
  readonly first: Consume;
  count: number;
  /** The decisions that nobody has taken yet, in order. */
  decided: DecisionReply[];
}

/**
 * Finds the equal consumes of a batch. Those with another step between them stay apart, so that the order holds.
 * @returns the length of the last part of all keys, if the steps consume units of different keys under one limit: their states can be read ahead.
 */
export function joinEquals(steps: readonly Step[]): number | undefined {
  // Made when two steps need it: it takes longer than the rest of a lone decision.
  let latest: Map<string, Consume> | undefined;
  let common = steps[0] instanceof Consume ? steps[0].known : undefined;
  for (const step of steps) {
    if (!(step instanceof Consume)) {
      latest = common = undefined;
      continue;
    }
    step.equals = undefined;
    const { redisKey, known, cost } = step;
    const { grows, delays } = known.limit.algorithm;
    // A log reads its state in parts, and it is too long to be sent.
    if (known !== common || grows) common = undefined;
    if (grows || steps.length === 1) continue;
    latest ??= new Map();
    const first = latest.get(redisKey);
    // In a queue, a request of two units waits for less than two requests of one.
    if (first === undefined || first.known !== known || first.cost !== cost || delays) {
      if (first !== undefined) common = undefined;
      latest.set(redisKey, step);
      continue;
    }
    first.equals ??= { first, count: 1, decided: [] };
    first.equals.count++;
    step.equals = first.equals;
  }
  return common?.lean?.kindSize;
}

/** Charges all limits of a request in one slot, or none. They are charged if they all pass. */
export class ConsumeAll extends Step<Decision[], readonly DecisionReply[]> {
  readonly #checks: readonly KeyedCheck[];

  constructor(checks: readonly KeyedCheck[], timeoutMs: number) {
    super((checks[0] as KeyedCheck).redisKey, timeoutMs, checks.length);
    this.#checks = checks;
  }

  override get keysId(): string {
    return this.#checks.map(({ redisKey }) => redisKey).join();
  }

  override get lean(): LeanRequest | undefined {
    if (this.#checks.some(({ shadow, dryRun }) => shadow || dryRun)) return undefined;
    return (this.#checks[0] as KeyedCheck).known.scripts.request(this.#checks, true);
  }

  write(batch: GeneralBatch): void {
    const args = ["a", String(this.#checks.length)];
    for (const { known, redisKey, cost, shadow, dryRun } of this.#checks) {
      batch.state(redisKey, known.policy);
      args.push(batch.policy(known.policy), String(cost), String((shadow ? 1 : 0) + (dryRun ? 2 : 0)));
    }
    batch.repeat(...args);
  }

  protected readAnswer(reply: Reply): readonly DecisionReply[] {
    const charged = reply.discriminant("whether a whole was charged", 0, 1) === 1;
    const decided = this.#checks.map(({ known, cost }, i) => reply.decision(known, cost, !charged, this.firstKey + i));
    const decisions = decided.map(({ decision }) => decision);
    if (passesAll(this.#checks, decisions) !== charged) reply.outOfRange("whether a whole was charged", charged ? 1 : 0);
    return decided;
  }

  protected override accept(decided: readonly DecisionReply[], reply: Reply): Decision[] {
    for (const [i, answer] of decided.entries()) this.remember(this.#checks[i] as KeyedCheck, answer, reply);
    return decided.map(({ decision }) => decision);
  }
}

/** Reads the state of one key, its block and its ban. */
abstract class ReadKey<T, Answer = T> extends Step<T, Answer> {
  /** Its letter in lua/batch.lua. */
  protected abstract readonly letter: "p" | "i";
  protected readonly known: KnownLimit;

  constructor(known: KnownLimit, redisKey: string, timeoutMs: number) {
    super(redisKey, timeoutMs);
    this.known = known;
  }

  write(batch: GeneralBatch): void {
    batch.state(this.redisKey, this.known.policy);
    batch.args.push(this.letter, batch.policy(this.known.policy));
  }
}

/** Peeks as a request of cost 1. */
export class Peek extends ReadKey<Decision> {
  protected readonly letter = "p";

  protected readAnswer(reply: Reply): Decision {
    return reply.decision(this.known, 1, false, this.firstKey).decision;
  }
}

/** Inspects a key. */
export class Inspect extends ReadKey<Inspection, { readonly state: Cells; readonly blocks: Cells }> {
  protected readonly letter = "i";

  protected readAnswer(reply: Reply): { readonly state: Cells; readonly blocks: Cells } {
    const { decision, state, blocks } = reply.inspected(this.known);
    if (!explains(state, decision, this.known.limit, reply.nowMs)) reply.outOfRange("a state with this decision", state[0] as number);
    return { state, blocks };
  }

  protected override accept({ state, blocks }: { state: Cells; blocks: Cells }, { nowMs }: Reply): Inspection {
    return inspectIn(this.known.limit, state, 0, nowMs, blocks);
  }
}

/** Changes a charge. With a receipt, it does so only if that is valid, and marks it. */
abstract class ChangeCharge<T> extends Step<T> {
  protected readonly known: KnownLimit;
  protected readonly charge: Charge;

  constructor(known: KnownLimit, redisKey: string, charge: Charge, timeoutMs: number) {
    super(redisKey, timeoutMs, charge.receipt === undefined ? 1 : 2);
    this.known = known;
    this.charge = charge;
  }

  /** @param letter in lua/batch.lua. */
  protected writeChange(batch: GeneralBatch, letter: "s" | "n", cost: number): void {
    const { cost: charged, atMs, heldUntilMs, state = 0, receipt } = this.charge;
    const reserved = heldUntilMs === undefined ? charged : -charged;
    batch.state(this.redisKey, this.known.policy);
    if (receipt !== undefined) batch.keys.push(markOf(this.redisKey, receipt.id));
    const args = [reserved, heldUntilMs ?? atMs, state, cost, receipt?.untilMs ?? ""].map(String);
    batch.args.push(letter, batch.policy(this.known.policy), ...args);
  }
}

/** Settles a charge to its real cost. Returns the units charged in addition; negative if refunded. */
export class Settle extends ChangeCharge<number> {
  readonly #cost: number;

  constructor(known: KnownLimit, redisKey: string, charge: Charge, cost: number, timeoutMs: number) {
    super(known, redisKey, charge, timeoutMs);
    this.#cost = cost;
  }

  /** Held units come back at any moment, so their rejections are not cached. */
  override get mayEndRejections(): boolean {
    return this.#cost < this.charge.cost && this.known.limit.policy.holdMs === undefined;
  }

  write(batch: GeneralBatch): void {
    this.writeChange(batch, "s", this.#cost);
  }

  protected readAnswer(reply: Reply): number {
    const change = reply.number("the change of a charge", -largest, largest);
    const units = change / reply.number("the parts of a unit", 1, largest);
    const { cost: reserved, heldUntilMs } = this.charge;
    // Held units that have come back meanwhile are charged in full.
    const most = heldUntilMs === undefined ? this.#cost - reserved : this.#cost;
    if (!(units >= -reserved && units <= Math.max(most, 0))) reply.outOfRange("the change of a charge", change);
    return units;
  }
}

/** Renews the slots of a charge. Undefined if its receipt was redeemed or has expired. */
export class Renew extends ChangeCharge<Decision | undefined> {
  write(batch: GeneralBatch): void {
    this.writeChange(batch, "n", 0);
  }

  protected readAnswer(reply: Reply): Decision | undefined {
    const { cost, receipt } = this.charge;
    if (reply.discriminant("whether a receipt is valid", receipt === undefined ? 1 : 0, 1) === 0) return undefined;
    return reply.decision(this.known, cost, false, this.firstKey).decision;
  }
}

/** Blocks or bans a key. */
export class Block extends Step<Blocked> {
  readonly #forMs: number;
  readonly #kind: BlockKind;

  constructor(blockKey: string, forMs: number, kind: BlockKind, timeoutMs: number) {
    super(blockKey, timeoutMs);
    this.#forMs = forMs;
    this.#kind = kind;
  }

  /** A block replaces one that may be longer. A ban that is in force stays. */
  override get mayEndRejections(): boolean {
    return this.#kind === "block";
  }

  write(batch: GeneralBatch): void {
    batch.keys.push(this.redisKey);
    batch.args.push("b", this.#kind === "ban" ? "1" : "0", String(this.#forMs));
  }

  protected readAnswer(reply: Reply): Blocked {
    const begun = reply.number("whether a block began", 0, 1) === 1;
    return { begun, leftMs: reply.number("the time that a key is blocked", 1, largest) };
  }
}

/** Frees a key, and answers nothing. */
export abstract class Free extends Step<void> {
  override get mayEndRejections(): boolean {
    return true;
  }

  protected readAnswer(reply: Reply): void {
    reply.number("a zero", 0, 0);
  }
}

/** Deletes a state, and lifts the ban of its key. */
export class DeleteState extends Free {
  readonly #others: readonly string[];

  /** @param others the keys beside the first that hold the state. */
  constructor(redisKey: string, others: readonly string[], timeoutMs: number) {
    super(redisKey, timeoutMs);
    this.#others = others;
  }

  write(batch: GeneralBatch): void {
    batch.keys.push(this.redisKey, ...this.#others);
    batch.args.push("d", String(1 + this.#others.length));
  }
}

/** Lifts the block and the ban of a key. */
export class LiftBlock extends Free {
  write(batch: GeneralBatch): void {
    batch.keys.push(this.redisKey);
    batch.args.push("u");
  }
}
