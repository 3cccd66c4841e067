import { type Cells, type Charge, type Decision, type Limit, latestMs, passesAll, runningMs, type Waiter } from "@floodgate/core/store";
import type { Batch } from "./batch.js";
import { queueTimeout, stepFault, timeout } from "./faults.js";
import { markOf } from "./keys.js";
import type { KnownLimit } from "./limits.js";
import type { Reply, Told } from "./reply.js";

const largest = Number.MAX_SAFE_INTEGER;

/** Steps that wait to be sent. */
export interface Queue {
  /** When the server answered last, by this process's steady clock. */
  readonly answeredMs: number;
}

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

/**
 * A question to Redis. It settles once, at its deadline at the latest. `read` only reads its answer; `settle` accepts it, once the
 * answers of the whole batch have been read and are sound.
 */
export abstract class Step<T = unknown> implements Waiter {
  readonly redisKey: string;
  /** How many keys it takes. */
  readonly checks: number;
  readonly answer: Promise<T>;
  /** By this process's steady clock. */
  readonly askedMs: number = performance.now();
  readonly latestMs: number;
  /** By the running clock, which stands still while the event loop does not run. */
  deadlineMs: number;
  /** The number of its first key in its batch, from 1 on. */
  firstKey = 0;
  place = -1;
  settled = false;
  /** The queue that it waits in; undefined once it was sent. */
  queue: Queue | undefined;
  readonly #timeoutMs: number;
  #resolve!: (value: T) => void;
  #reject!: (error: unknown) => void;
  /** What is wrong with this step alone. */
  #problem: string | undefined;

  constructor(redisKey: string, timeoutMs: number, checks = 1) {
    this.redisKey = redisKey;
    this.checks = checks;
    this.#timeoutMs = timeoutMs;
    this.deadlineMs = runningMs(this.askedMs) + timeoutMs;
    this.latestMs = latestMs(timeoutMs, this.askedMs);
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Writes its keys and arguments. */
  abstract write(batch: Batch): void;

  /** Reads its answer, and keeps it. @throws MalformedReply */
  protected abstract readAnswer(reply: Reply): void;

  /** Makes what was read the answer, and remembers what it tells of keys. */
  protected abstract accept(reply: Reply): T;

  /** @throws MalformedReply */
  read(reply: Reply): void {
    this.#problem = reply.fault();
    if (this.#problem !== undefined) return;
    this.readAnswer(reply);
    this.#problem = reply.takeWrong();
  }

  /** Settles it by what was read, unless it has settled before. */
  settle(reply: Reply): void {
    if (this.settled) return;
    if (this.#problem !== undefined) {
      this.fail(stepFault(this.#problem, this.redisKey));
      return;
    }
    this.#resolve(this.accept(reply));
    this.settled = true;
  }

  fail(error: unknown): void {
    this.settled = true;
    this.#reject(error);
  }

  expire(): void {
    const others = this.queue !== undefined && this.queue.answeredMs > this.askedMs;
    this.fail(others ? queueTimeout(this.#timeoutMs) : timeout(this.#timeoutMs));
  }

  /** A rejected request's state is worth remembering, and of a rejected whole those of its neighbours. */
  protected remember({ known, key }: KeyedCheck, { decision, state }: Told, reply: Reply): void {
    if (known.denied === undefined) return;
    if (state !== undefined) {
      if (!explains(state, decision, known.limit, reply.nowMs)) return;
      const spare = decision.limit - decision.cost;
      known.denied.add(key, { cells: state, spare, atMs: reply.nowMs, sentMs: reply.sentMs, receivedMs: reply.receivedMs });
    } else if (decision.allowed) known.denied.doubt(key);
  }
}

/** Whether core's own algorithm says the same of a state. If not, somebody has tampered with it, and it is no reason to reject anything. */
function explains(state: Cells, told: Decision, limit: Limit, nowMs: number): boolean {
  const own = limit.algorithm.decide(limit, state, 0, nowMs, told.cost, false);
  return (
    own.allowed === told.allowed &&
    own.remaining === told.remaining &&
    own.retryAfterMs === told.retryAfterMs &&
    own.resetAfterMs === told.resetAfterMs
  );
}

export class Consume extends Step<Decision> {
  readonly #check: KeyedCheck;
  #told!: Told;

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

  protected readAnswer(reply: Reply): void {
    const { known, cost } = this.#check;
    this.#told = reply.told(known, cost, false, this.firstKey);
  }

  protected accept(reply: Reply): Decision {
    this.remember(this.#check, this.#told, reply);
    return this.#told.decision;
  }
}

/** What several limits of one slot said, and whether they charged. */
export interface Whole {
  readonly charged: boolean;
  readonly decisions: readonly Decision[];
}

export class ConsumeAll extends Step<Whole> {
  readonly #checks: readonly KeyedCheck[];
  #charged!: boolean;
  #told!: readonly Told[];

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

  protected readAnswer(reply: Reply): void {
    const charged = reply.turn("whether a whole was charged", 0, 1) === 1;
    this.#told = this.#checks.map(({ known, cost }, i) => reply.told(known, cost, !charged, this.firstKey + i));
    const decisions = this.#told.map(({ decision }) => decision);
    if (passesAll(this.#checks, decisions) !== charged) reply.wrong("whether a whole was charged", charged ? 1 : 0);
    this.#charged = charged;
  }

  protected accept(reply: Reply): Whole {
    const decisions = this.#told.map((told, i) => {
      this.remember(this.#checks[i] as KeyedCheck, told, reply);
      return told.decision;
    });
    return { charged: this.#charged, decisions };
  }
}

/** Looks as a request of cost 1 would. */
export class Look extends Step<Decision> {
  readonly #known: KnownLimit;
  #told!: Told;

  constructor(known: KnownLimit, redisKey: string, timeoutMs: number) {
    super(redisKey, timeoutMs);
    this.#known = known;
  }

  write(batch: Batch): void {
    batch.keys.push(this.redisKey);
    batch.args.push("p", batch.policy(this.#known.policy));
  }

  protected readAnswer(reply: Reply): void {
    this.#told = reply.told(this.#known, 1, false, this.firstKey);
  }

  protected accept(): Decision {
    return this.#told.decision;
  }
}

/** Changes a charge to its real cost. Answers the units charged in addition, or below 0 given back. */
export class Settle extends Step<number> {
  readonly #known: KnownLimit;
  readonly #charge: Charge;
  readonly #cost: number;
  #units!: number;

  constructor(known: KnownLimit, redisKey: string, charge: Charge, cost: number, timeoutMs: number) {
    super(redisKey, timeoutMs, charge.receipt === undefined ? 1 : 2);
    this.#known = known;
    this.#charge = charge;
    this.#cost = cost;
  }

  write(batch: Batch): void {
    const { cost, atMs, state = 0, receipt } = this.#charge;
    const change = [batch.policy(this.#known.policy), cost, atMs, state, this.#cost].map(String);
    batch.keys.push(this.redisKey);
    if (receipt === undefined) {
      batch.args.push("s", ...change);
      return;
    }
    batch.keys.push(markOf(this.redisKey, receipt.id));
    batch.args.push("r", ...change, String(receipt.untilMs));
  }

  protected readAnswer(reply: Reply): void {
    const change = reply.number("the change of a charge", -largest, largest);
    const units = change / reply.number("the parts of a unit", 1, largest);
    const reserved = this.#charge.cost;
    if (!(units >= -reserved && units <= Math.max(this.#cost - reserved, 0))) reply.wrong("the change of a charge", change);
    this.#units = units;
  }

  protected accept(): number {
    return this.#units;
  }
}

/** Forgets a state. */
export class Reset extends Step<void> {
  write(batch: Batch): void {
    batch.keys.push(this.redisKey);
    batch.args.push("d");
  }

  protected readAnswer(reply: Reply): void {
    reply.number("a zero", 0, 0);
  }

  protected accept(): void {}
}
