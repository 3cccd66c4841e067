import { setTimeout as sleep } from "node:timers/promises";
import { createLimit, type Decision, encodeKey } from "@floodgate/core/store";
import { redisStore } from "@floodgate/store-redis";
import type { Client } from "./clients.js";
import { clientLimit, clientPolicy, type OnStoreErrorName, share } from "./limits.js";
import { Load } from "./load.js";
import { type Fault, probe, type Scene } from "./scene.js";
import type { Stage } from "./stage.js";

/** The minimum duration of a fault. */
const lastsMs = 600;
/** How many decisions to watch before and after the fault. */
const fewDecisions = 100;
/** The longest wait for an expected condition. */
const patienceMs = 10_000;
/** The margin between the last decision that is certainly inside the fault and the fault's end. */
const marginMs = 50;

/** Runs one fault and records its times. */
export class Play {
  readonly load: Load;
  readonly #fault: Fault;
  readonly #scene: Scene;
  /** When the fault was started and active, and when its end was started and done. */
  #strikingMs = Number.POSITIVE_INFINITY;
  #struckMs = Number.POSITIVE_INFINITY;
  #liftingMs = Number.POSITIVE_INFINITY;
  #liftedMs = Number.POSITIVE_INFINITY;

  constructor(fault: Fault, scene: Scene, stage: Stage, whenStoreFails: OnStoreErrorName) {
    this.#fault = fault;
    this.#scene = scene;
    this.load = new Load({
      apps: stage.apps,
      share: whenStoreFails === "fallback" ? share : 0,
      denies: whenStoreFails === "deny",
      doubtful: (startMs, decision) => this.#doubtful(startMs, decision),
    });
  }

  /** Returns how long it took until limits were exact again. */
  async perform(): Promise<number> {
    if (this.#fault.atBoot !== true) await this.#watch();
    this.#strikingMs = performance.now();
    await this.#scene.strike();
    if (this.#fault.forgets === "when struck") this.load.forget();
    this.#struckMs = performance.now();
    await sleep(lastsMs);
    this.#liftingMs = performance.now();
    await sleep(marginMs);
    await this.#scene.lift();
    if (this.#fault.forgets === "when lifted") this.load.forget();
    this.#liftedMs = performance.now();
    await Promise.all(this.#scene.clients.map((client) => until(`${client.library} gets an answer`, () => answers(client))));
    const readyMs = performance.now();
    await until("limits are exact again", () => this.load.burst());
    const recoveryMs = performance.now() - readyMs;
    await this.#watch();
    await this.load.stop();
    return recoveryMs;
  }

  #watch(): Promise<void> {
    const enough = this.load.decisions.all + fewDecisions;
    return until(`${fewDecisions} decisions more are made`, () => this.load.decisions.all >= enough);
  }

  /**
   * Whether Redis may have charged more than it reported: after a decision without a reply that Redis could have made, and after a
   * broken connection, because the library may have resent commands.
   */
  #doubtful(startMs: number, { degraded }: Decision): boolean {
    const endMs = performance.now();
    const during = (fromMs: number, toMs: number): boolean => startMs <= toMs && endMs >= fromMs;
    if (this.#fault.decides && during(this.#strikingMs, this.#liftedMs)) return true;
    if (degraded) return startMs < this.#struckMs || endMs > this.#liftingMs;
    return during(this.#strikingMs, this.#struckMs) || during(this.#liftingMs, this.#liftedMs);
  }

  /** What is wrong after the load: with the counts in Redis, and with commands that still wait. */
  async audit(): Promise<string[]> {
    const problems: string[] = [];
    // Calls the store directly, to bypass the apps' breaker.
    const store = redisStore((this.#scene.clients[0] as Client).redis);
    const limit = createLimit(clientLimit, clientPolicy);
    const { accounts } = this.load;
    await Promise.all(
      Array.from(accounts, async ([client, account]) => {
        const { remaining } = await store.peek(limit, encodeKey(client), patienceMs);
        const problem = account.audit(remaining);
        if (problem !== undefined) problems.push(`${client}: ${problem}`);
      }),
    );
    for (const { library, queued } of this.#scene.clients) if (queued) problems.push(`${queued} commands still wait in ${library}`);
    return problems;
  }
}

/** Whether a client's library gets a reply soon: then it is connected again. */
function answers(client: Client): Promise<boolean> {
  const answered = client.get(probe).then(
    () => true,
    () => false,
  );
  return Promise.race([answered, sleep(200, false)]);
}

/** @throws Error if the condition does not come true. */
async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + patienceMs;
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`Waited ${patienceMs} ms in vain until ${what}.`);
    await sleep(5);
  }
}
