import type { Decision, Waiter } from "@floodgate/core";
import type { Batch } from "./batch.js";
import { stepFault, timeout } from "./faults.js";
import type { KnownLimit } from "./limits.js";
import type { Reply, Told } from "./reply.js";

/** A limit's key in Redis, and what a request asks of it. */
export interface KeyedCheck {
  readonly known: KnownLimit;
  readonly key: string;
  readonly redisKey: string;
  readonly cost: number;
  readonly shadow: boolean;
  /** Whether the limit is only looked at, and never charged. */
  readonly look: boolean;
}

/** Something that Redis is asked for. It settles once, and hears nothing after its deadline. */
export abstract class Step<T = unknown> implements Waiter {
  readonly redisKey: string;
  /** How many keys it takes. */
  readonly checks: number;
  readonly answer: Promise<T>;
  /** By this process's steady clock. */
  readonly askedMs: number = performance.now();
  readonly deadlineMs: number;
  place = -1;
  settled = false;
  #resolve!: (value: T) => void;
  #reject!: (error: unknown) => void;

  constructor(redisKey: string, timeoutMs: number, checks = 1) {
    this.redisKey = redisKey;
    this.checks = checks;
    this.deadlineMs = this.askedMs + timeoutMs;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Writes its keys and arguments. */
  abstract write(batch: Batch): void;

  /** Reads its answer, and remembers what it tells of keys unless nobody waits any more. */
  protected abstract readAnswer(reply: Reply): T;

  read(reply: Reply): void {
    const text = reply.fault();
    if (text !== undefined) {
      this.fail(stepFault(text, this.redisKey));
      return;
    }
    const answer = this.readAnswer(reply);
    this.settled = true;
    this.#resolve(answer);
  }

  fail(error: unknown): void {
    this.settled = true;
    this.#reject(error);
  }

  expire(): void {
    this.fail(timeout(this.deadlineMs - this.askedMs));
  }

  /** A rejected request's state is worth remembering, and of a rejected whole those of its neighbours. */
  protected remember({ known, key }: KeyedCheck, { decision, state }: Told, reply: Reply): void {
    if (this.settled || known.denied === undefined) return;
    if (state !== undefined) {
      const spare = decision.limit - decision.cost;
      known.denied.add(key, { cells: state, spare, atMs: reply.nowMs, sentMs: reply.sentMs, receivedMs: reply.receivedMs });
    } else if (decision.allowed) known.denied.doubt(key);
  }
}

export class Consume extends Step<Decision> {
  readonly #check: KeyedCheck;

  constructor(check: KeyedCheck, timeoutMs: number) {
    super(check.redisKey, timeoutMs);
    this.#check = check;
  }

  write(batch: Batch): void {
    const { known, redisKey, cost } = this.#check;
    batch.keys.push(redisKey);
    const policy = batch.policy(known.policy);
    if (cost === 1) batch.repeat(policy);
    else batch.args.push("c", policy, String(cost));
  }

  protected readAnswer(reply: Reply): Decision {
    const { known, cost } = this.#check;
    const told = reply.told(known.limit, cost, false);
    this.remember(this.#check, told, reply);
    return told.decision;
  }
}

/** What several limits of one slot said, and whether they charged. */
export interface Whole {
  readonly charged: boolean;
  readonly decisions: readonly Decision[];
}

export class ConsumeAll extends Step<Whole> {
  readonly #checks: readonly KeyedCheck[];

  constructor(checks: readonly KeyedCheck[], timeoutMs: number) {
    super((checks[0] as KeyedCheck).redisKey, timeoutMs, checks.length);
    this.#checks = checks;
  }

  write(batch: Batch): void {
    const args = ["a", String(this.#checks.length)];
    for (const { known, redisKey, cost, shadow, look } of this.#checks) {
      batch.keys.push(redisKey);
      args.push(batch.policy(known.policy), String(cost), String((shadow ? 1 : 0) + (look ? 2 : 0)));
    }
    batch.repeat(...args);
  }

  protected readAnswer(reply: Reply): Whole {
    const charged = reply.number() === 1;
    const decisions = this.#checks.map((check) => {
      const told = reply.told(check.known.limit, check.cost, !charged);
      this.remember(check, told, reply);
      return told.decision;
    });
    return { charged, decisions };
  }
}

/** Looks as a request of cost 1 would. */
export class Look extends Step<Decision> {
  readonly #known: KnownLimit;

  constructor(known: KnownLimit, redisKey: string, timeoutMs: number) {
    super(redisKey, timeoutMs);
    this.#known = known;
  }

  write(batch: Batch): void {
    batch.keys.push(this.redisKey);
    batch.args.push("p", batch.policy(this.#known.policy));
  }

  protected readAnswer(reply: Reply): Decision {
    return reply.told(this.#known.limit, 1, false).decision;
  }
}

/** Changes what a decision charged to its real cost. Answers the units charged in addition, or below 0 given back. */
export class Settle extends Step<number> {
  readonly #known: KnownLimit;
  readonly #decision: Decision;
  readonly #cost: number;

  constructor(known: KnownLimit, redisKey: string, decision: Decision, cost: number, timeoutMs: number) {
    super(redisKey, timeoutMs);
    this.#known = known;
    this.#decision = decision;
    this.#cost = cost;
  }

  write(batch: Batch): void {
    const { cost, atMs } = this.#decision;
    batch.keys.push(this.redisKey);
    batch.args.push("s", batch.policy(this.#known.policy), String(cost), String(atMs), String(this.#cost));
  }

  protected readAnswer(reply: Reply): number {
    const change = reply.number();
    const parts = reply.number();
    return change / parts;
  }
}

/** Forgets a state. */
export class Reset extends Step<void> {
  write(batch: Batch): void {
    batch.keys.push(this.redisKey);
    batch.args.push("d");
  }

  protected readAnswer(reply: Reply): void {
    reply.number();
  }
}
