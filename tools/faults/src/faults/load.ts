import { setTimeout as sleep } from "node:timers/promises";
import type { Decision } from "@floodgate/core";
import { type Answer, Browser } from "../http.js";
import { Account } from "./account.js";
import { capacity } from "./limits.js";
import type { Place } from "./stage.js";

export interface LoadOptions {
  readonly apps: readonly Place[];
  /** What a fallback lets pass of a client's requests; 0 where there is none. */
  readonly share: number;
  /** Whether a request that cannot be decided is turned away. */
  readonly denies: boolean;
  /** Whether Redis may have charged a request more than it has told, as far as is known when its response is there. */
  doubtful(startMs: number, decision: Decision): boolean;
}

const visitors = 12;
/** Between two requests of a visitor. */
const paceMs = 15;

/**
 * A steady load: visitors who come as one client after the other, each of which asks some times more than it may, of all apps in
 * turn. Every response is held against what was decided, and every decision against those before it.
 */
export class Load {
  readonly decisions = { all: 0, degraded: 0 };
  /** Requests that got no response, another than they should have, or a verdict that was wrong: what was wrong. */
  readonly lost: string[] = [];
  readonly untrue: string[] = [];
  readonly wrong: string[] = [];
  readonly #options: LoadOptions;
  readonly #browser = new Browser();
  #accounts = new Map<string, Account>();
  #clients = 0;
  #turn = 0;
  #running = true;
  readonly #visitors: Promise<void>[];

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#visitors = Array.from({ length: visitors }, () => this.#visit());
  }

  /** Redis has forgotten everything: the clients until now are no longer followed. */
  forget(): void {
    this.#accounts = new Map();
  }

  /** The clients that were followed to the end. */
  get accounts(): ReadonlyMap<string, Account> {
    return this.#accounts;
  }

  async #visit(): Promise<void> {
    while (this.#running) {
      const client = `client-${this.#clients++}`;
      const account = new Account(capacity, this.#options.share);
      const accounts = this.#accounts;
      accounts.set(client, account);
      // What a fallback has let pass is not known to the apps of the other client.
      const alone = this.#options.share > 0 ? this.#nextApp() : undefined;
      for (let i = 0; i < capacity + 3 && this.#running && accounts === this.#accounts; i++) {
        await this.#ask(alone ?? this.#nextApp(), client, account, accounts);
        await sleep(paceMs);
      }
    }
  }

  async #ask(app: Place, client: string, account: Account, accounts: object): Promise<void> {
    const startMs = performance.now();
    const answer = await this.#browser.get(app.port, client);
    const [decision] = app.witness.take(client);
    this.decisions.all++;
    if (typeof answer === "string" || decision === undefined) {
      account.doubt();
      this.lost.push(`${app.name}: ${typeof answer === "string" ? answer : `status ${answer.status} without a decision`}`);
      return;
    }
    if (decision.degraded) this.decisions.degraded++;
    const untrue = falsehood(decision, answer, this.#options.denies);
    if (untrue !== undefined) this.untrue.push(`${app.name}: ${untrue}`);
    if (this.#options.doubtful(startMs, decision)) account.doubt();
    const wrong = account.add(decision);
    if (wrong !== undefined && accounts === this.#accounts) this.wrong.push(`${app.name}, ${client}: ${wrong}`);
  }

  /** Sends twice as many requests at once as a client may, to all apps. Answers whether Redis decided them all, and so exactly. */
  async burst(): Promise<boolean> {
    const client = `client-${this.#clients++}`;
    const asked = Array.from({ length: 2 * capacity }, () => this.#browser.get(this.#nextApp().port, client));
    await Promise.all(asked);
    const decisions = this.#options.apps.flatMap(({ witness }) => witness.take(client));
    this.decisions.all += decisions.length;
    if (decisions.length < 2 * capacity || decisions.some(({ degraded }) => degraded)) return false;
    const passed = decisions.filter(({ allowed }) => allowed).length;
    if (passed !== capacity) this.wrong.push(`${passed} of ${2 * capacity} requests at once passed where ${capacity} should`);
    return true;
  }

  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#visitors);
    this.#browser.close();
  }

  #nextApp(): Place {
    return this.#options.apps[this.#turn++ % this.#options.apps.length] as Place;
  }
}

/** What is wrong with a response to a request that was decided like this; undefined where it is as promised. */
function falsehood(decision: Decision, { status, headers, body }: Answer, denies: boolean): string | undefined {
  const { allowed, degraded, remaining } = decision;
  const expected = allowed ? 200 : degraded && denies ? 503 : 429;
  if (status !== expected) return `status ${status} in place of ${expected}`;
  const told = Object.keys(headers).filter((name) => /^(x-)?ratelimit/.test(name));
  if (degraded && told.length > 0) return `${told} where nothing is known`;
  if (!degraded && !`${headers["ratelimit"]},`.includes(`"client";r=${remaining};`))
    return `RateLimit: ${headers["ratelimit"]} where ${remaining} remain`;
  if (allowed) return undefined;
  if (!/^[1-9]\d*$/.test(headers["retry-after"] ?? "")) return `Retry-After: ${headers["retry-after"]}`;
  const problem = status === 503 ? "temporary-reduced-capacity" : "quota-exceeded";
  return body.includes(problem) ? undefined : `a body that is no ${problem}: ${body}`;
}
