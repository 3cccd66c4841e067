import { type Grant, grantOf, restMsAfter } from "../../src/lease/grant.js";
import { type Fetch, KeyLease } from "../../src/lease/key-lease.js";
import { PolicyModel } from "./policy-model.js";
import type { Fault, Setup } from "./setup.js";
import { Violation } from "./violation.js";

/** A message on its way, in any order. */
type Message =
  | {
      readonly kind: "fetch";
      readonly from: number;
      readonly fetch: Fetch;
      readonly want: number;
      readonly sentMs: number;
      timedOut: boolean;
    }
  | { readonly kind: "reply"; readonly from: number; readonly fetch: Fetch; readonly debit: Debit; timedOut: boolean }
  | {
      readonly kind: "end";
      readonly from: number;
      readonly id: string;
      readonly spent: number;
      /** Whether a request that was rejected asks again after it. */
      readonly asks: boolean;
    };

interface Debit {
  readonly units: number;
  readonly state: number;
  readonly atMs: number;
  readonly remaining: number;
  readonly resetAfterMs: number;
  readonly processes: number;
  readonly sentMs: number;
}

interface Process {
  lease: KeyLease;
  isDown: boolean;
  /** When it reset or blocked the key itself; units debited before must not be spent. */
  endedMs: number;
}

/** Several processes with one key, a model of Redis, and messages between them. Each step is one that reality may take. */
export class World {
  readonly #setup: Setup;
  readonly #fault: Fault;
  nowMs = 0;
  server: PolicyModel;
  processes: Process[];
  messages: Message[] = [];
  fetches = 0;
  crashes = 0;
  losses = 0;
  resets = 0;
  blocks = 0;
  closes = 0;
  resetMs = 0;
  blockMs = 0;

  constructor(setup: Setup, fault: Fault) {
    this.#setup = setup;
    this.#fault = fault;
    this.server = new PolicyModel(setup.policy, setup.lifeMs);
    this.processes = Array.from({ length: setup.processes }, () => ({
      lease: new KeyLease(0),
      isDown: false,
      endedMs: 0,
    }));
  }

  clone(): World {
    const copy = new World(this.#setup, this.#fault);
    const fetches = new Map<Fetch, Fetch>();
    const fetchOf = (fetch: Fetch): Fetch => {
      const known = fetches.get(fetch) ?? { ...fetch };
      fetches.set(fetch, known);
      return known;
    };
    Object.assign(copy, this);
    copy.server = this.server.clone();
    copy.processes = this.processes.map(({ lease, isDown, endedMs }) => {
      const twin = Object.assign(new KeyLease(0), lease);
      twin.grants = lease.grants.map((grant) => ({ ...grant }));
      twin.fetch = lease.fetch && fetchOf(lease.fetch);
      return { lease: twin, isDown, endedMs };
    });
    copy.messages = this.messages.map((message) => ("fetch" in message ? { ...message, fetch: fetchOf(message.fetch) } : { ...message }));
    return copy;
  }

  /** Equal for worlds with the same future. Processes are alike, so their order does not matter; nor does how hot they found the key. */
  id(): string {
    const { nowMs, server } = this;
    const begun = (state: number): number => server.state - state;
    const parts = this.processes.map(({ lease, isDown, endedMs }, i) => {
      const own = this.messages.filter((message) => message.from === i);
      // What tells two ids apart: what Redis knows of them, and which of the others are the same.
      const ids = [...lease.grants, ...own.map((message) => ("fetch" in message ? message.fetch : message))]
        .map(({ id }) => id)
        .sort(byAge);
      const known = (id: string): unknown[] => {
        const record = server.records.get(id);
        const held = record && [begun(record.state), record.atMs, record.units];
        return [[...new Set(ids)].indexOf(id), server.records.has(id), held];
      };
      const grants = lease.grants.map(({ id, units, spent, charge, untilMs, sentMs }) => [
        known(id),
        units,
        spent,
        begun(charge.state as number),
        nowMs - charge.atMs,
        untilMs,
        sentMs,
      ]);
      const messages = own.map((message) => {
        const { kind } = message;
        if (kind === "end") return [kind, known(message.id), message.spent, message.asks].join();
        const { fetch, timedOut } = message;
        const own = [kind, known(fetch.id), timedOut, fetch === lease.fetch, fetch.isVoid];
        if (kind === "fetch") return [...own, message.sentMs, message.want].join();
        const { units, state, atMs, sentMs, resetAfterMs, processes } = message.debit;
        return [...own, units, begun(state), atMs, sentMs, resetAfterMs, processes].join();
      });
      const restMs = Math.max(0, lease.restUntilMs - nowMs);
      const fetching = lease.fetch === undefined ? "" : lease.fetch.isVoid;
      return [grants.join("/"), messages.sort().join("/"), restMs, fetching, lease.ending, isDown, endedMs, server.members[i]].join(";");
    });
    const times = [nowMs, this.crashes, this.losses, this.resets, this.blocks, this.closes, this.resetMs, this.blockMs];
    return [...times, server.id(), ...parts.sort()].join("|");
  }

  /** Every step that may come next. */
  steps(): [name: string, take: (world: World) => void][] {
    const steps: [string, (world: World) => void][] = [];
    const { crashes, losses, resets, blocks, closes, endMs, stepMs } = this.#setup;
    this.processes.forEach(({ isDown, lease }, i) => {
      if (isDown) return;
      steps.push([`${i} consumes`, (world) => world.consume(i)]);
      if (lease.grants.some(({ untilMs }) => untilMs <= this.nowMs)) steps.push([`${i} sweeps`, (world) => world.sweep(i)]);
      if (!lease.isIdle && this.closes < closes) steps.push([`${i} closes`, (world) => world.close(i)]);
      if (!lease.isIdle && this.crashes < crashes) steps.push([`${i} crashes`, (world) => world.crash(i)]);
      if (this.resets < resets) steps.push([`${i} resets`, (world) => world.reset(i)]);
      if (this.blocks < blocks) steps.push([`${i} blocks`, (world) => world.block(i)]);
    });
    this.messages.forEach((message, m) => {
      steps.push([`${message.kind} arrives`, (world) => world.arrive(m)]);
      if (this.losses < losses) {
        const isEnd = message.kind === "end";
        steps.push([
          `${message.kind}${isEnd ? " arrives, its answer" : ""} is lost`,
          (world) => (isEnd ? world.arrive(m, true) : world.lose(m)),
        ]);
      }
      if ("fetch" in message && !message.timedOut && this.losses < losses)
        steps.push([`${message.kind} times out`, (world) => world.timeOut(m)]);
    });
    if (this.nowMs < endMs) {
      steps.push([
        "time passes",
        (world) => {
          world.nowMs += stepMs;
        },
      ]);
    }
    return steps;
  }

  leaseOf(i: number): KeyLease {
    return (this.processes[i] as Process).lease;
  }

  consume(i: number): void {
    const now = { ms: this.nowMs, wallMs: this.nowMs };
    const lease = this.leaseOf(i);
    // The key is hot whatever this run has made of it.
    Object.assign(lease, { units: 0, unitsBefore: 10, requests: 0, requestsBefore: 10, sinceMs: this.nowMs, wanted: 10 });
    const grant = lease.find(1, now);
    if (grant !== undefined) {
      lease.spend(grant, 1);
      this.#spent(i, grant);
    } else if (this.blocks === 0 && !this.server.consume(this.nowMs, this.resets > 0)) {
      this.#rejected(i);
    }
    const want = lease.want(this.nowMs, this.#setup.lifeMs);
    if (want === 0) return;
    const fetch = lease.begin(want, String(this.fetches++));
    this.messages.push({ kind: "fetch", from: i, fetch, want, sentMs: this.nowMs, timedOut: false });
    if (this.#fault === "spend-before-debit") {
      const charge = { cost: 2, atMs: this.nowMs, state: this.server.state };
      lease.grants.push({
        id: fetch.id,
        units: 2,
        spent: 0,
        charge,
        remaining: 0,
        resetAfterMs: 1000,
        sentMs: this.nowMs,
        untilMs: this.nowMs + 10,
        untilWallMs: this.nowMs + 10,
      });
    }
  }

  /** Redis has rejected a request. Beside units that are held here, that is not its last word. */
  #rejected(i: number): void {
    const lease = this.leaseOf(i);
    const holds = lease.grants.some(({ units, spent }) => units > spent);
    if (this.#fault !== "no-release") {
      lease.rest(this.nowMs, this.#setup.lifeMs);
      this.release(i, lease.end(), true);
    }
    if (holds && lease.grants.length > 0) throw new Violation("A request was rejected beside units of its own process.");
  }

  /** A unit of a grant has let a request pass. */
  #spent(i: number, { charge, sentMs }: Grant): void {
    const { lifeMs } = this.#setup;
    const { endedMs } = this.processes[i] as Process;
    if (sentMs < endedMs) throw new Violation("A lease was spent after a reset or a block in its own process.");
    if (this.blocks > 0 && this.nowMs >= this.blockMs + lifeMs) throw new Violation("A lease was spent a life after a block.");
    const isOld = charge.state !== this.server.state;
    if (isOld && this.resets > 0 && this.nowMs >= this.resetMs + lifeMs) throw new Violation("A lease was spent a life after a reset.");
    this.server.admit(this.nowMs, charge.state as number, this.resets > 0);
  }

  sweep(i: number): void {
    this.release(i, this.leaseOf(i).endOver({ ms: this.nowMs, wallMs: this.nowMs }));
  }

  close(i: number): void {
    this.closes++;
    this.release(i, this.leaseOf(i).end());
  }

  release(from: number, grants: readonly Grant[], asks = false): void {
    for (const { id, spent } of grants) this.#end(from, id, spent, asks);
  }

  #end(from: number, id: string, spent: number, asks = false): void {
    this.leaseOf(from).ending++;
    this.messages.push({ kind: "end", from, id, spent, asks });
  }

  crash(i: number): void {
    const process = this.processes[i] as Process;
    this.crashes++;
    process.isDown = true;
    for (const { units, spent } of process.lease.end()) this.server.lost += units - spent;
    process.lease = new KeyLease(0);
  }

  reset(i: number): void {
    this.resets++;
    this.resetMs = this.nowMs;
    (this.processes[i] as Process).endedMs = this.nowMs;
    if (this.#fault !== "no-end-at-reset") this.leaseOf(i).end();
    this.server.reset();
  }

  block(i: number): void {
    this.blocks++;
    this.blockMs = this.nowMs;
    (this.processes[i] as Process).endedMs = this.nowMs;
    this.release(i, this.leaseOf(i).end());
  }

  /** @param isUnanswered of an end: then it is sent again. */
  arrive(m: number, isUnanswered = false): void {
    const [message] = this.messages.splice(m, 1) as [Message];
    if (message.kind === "end") {
      this.#ends(message, isUnanswered);
    } else if (message.kind === "fetch") {
      const { from, fetch, sentMs, timedOut, want } = message;
      const debit = this.blocks > 0 ? noUnits : this.server.lease(this.nowMs, from, fetch.id, want);
      this.messages.push({ kind: "reply", from, fetch, debit: { ...debit, sentMs }, timedOut });
    } else if (!message.timedOut) {
      this.#receive(message.from, message.fetch, message.debit);
    }
  }

  #ends(message: Message & { readonly kind: "end" }, isUnanswered: boolean): void {
    const { from, id, spent, asks } = message;
    this.server.end(this.nowMs, id, spent, this.#fault === "record-remains");
    if (this.#fault === "no-record-of-the-end" && this.server.records.get(id) === undefined) this.server.records.delete(id);
    const { lease, isDown } = this.processes[from] as Process;
    if (isUnanswered) {
      this.losses++;
      this.messages.push({ ...message, asks: false });
    } else if (!isDown) {
      lease.ending--;
    }
    if (asks && this.blocks === 0) this.server.consume(this.nowMs, this.resets > 0);
  }

  #receive(i: number, fetch: Fetch, { units, state, atMs, remaining, resetAfterMs, processes, sentMs }: Debit): void {
    const { lease, isDown } = this.processes[i] as Process;
    if (isDown) {
      this.server.lost += units;
      return;
    }
    const { policy, lifeMs } = this.#setup;
    const restMs = restMsAfter(policy, lifeMs, sentMs, resetAfterMs, this.nowMs);
    if (units === 0) {
      lease.refused(this.nowMs, restMs);
      return;
    }
    const from = this.#fault === "life-from-reply" ? this.nowMs : sentMs;
    const edgeMs = this.#fault === "no-edge" ? 1e9 : resetAfterMs;
    const charge = { cost: units, atMs, state };
    const { id } = fetch;
    const grant = grantOf(policy, lifeMs, {
      id,
      units,
      charge,
      remaining,
      resetAfterMs: edgeMs,
      processes,
      sentMs: from,
      sentWallMs: from,
    });
    if (this.#fault === "void-is-spent") fetch.isVoid = false;
    this.release(i, lease.granted(fetch, grant, { ms: this.nowMs, wallMs: this.nowMs }, restMs));
    // The fault is in what the grant believes, so its debit stays as it was.
    if (from !== sentMs) for (const held of lease.grants) if (held === grant) Object.assign(held, { sentMs: from });
  }

  /** A fetch or its reply is lost, and its sender finds out. */
  lose(m: number): void {
    const [message] = this.messages.splice(m, 1) as [Message];
    this.#giveUp(message);
  }

  /** The sender gives up, but its fetch still arrives. */
  timeOut(m: number): void {
    this.#giveUp(this.messages[m] as Message);
  }

  #giveUp(message: Message): void {
    this.losses++;
    if (message.kind === "end" || message.timedOut) return;
    message.timedOut = true;
    const { from, fetch } = message;
    if (this.processes[from]?.isDown) return;
    this.leaseOf(from).refused(this.nowMs, this.#setup.lifeMs);
    if (this.#fault !== "no-end-after-loss") this.#end(from, fetch.id, 0);
  }

  /** Bounds that hold at any moment. */
  check(): void {
    const { lifeMs } = this.#setup;
    for (const { lease } of this.processes) {
      if (lease.grants.length > 2) throw new Violation("A process holds more than two leases of a key.");
      for (const { units, spent, sentMs, untilMs } of lease.grants) {
        if (untilMs - sentMs > lifeMs) throw new Violation("A lease lives longer than a life.");
        if (spent > units) throw new Violation("More units of a lease were spent than it has.");
      }
    }
    const held = this.processes.reduce((sum, { lease }) => lease.grants.reduce((all, { units, spent }) => all + units - spent, sum), 0);
    this.server.check(this.nowMs, held);
  }

  /** What holds once all messages have arrived and all leases have ended: no unit is stranded, but those of crashes. */
  checkEnd(): void {
    this.nowMs += this.#setup.lifeMs;
    do {
      for (const i of this.processes.keys()) this.sweep(i);
      if (this.processes.some(({ lease }) => lease.grants.length > 0)) throw new Violation("A lease lives on after its life.");
      if (this.messages.length > 0) this.arrive(0);
    } while (this.messages.length > 0);
    this.server.checkEnd(this.nowMs);
  }
}

/** Ids are numbers in the order of their fetches. */
const byAge = (one: string, other: string): number => Number(one) - Number(other);

const noUnits = { units: 0, state: 0, atMs: 0, remaining: 0, resetAfterMs: 0, processes: 1 };
