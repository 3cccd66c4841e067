import { setTimeout as sleep } from "node:timers/promises";
import type { Decision } from "@floodgate/core";
import { type Answer, Browser } from "../http.js";
import { Account } from "./account.js";
import { capacity } from "./limits.js";
import type { Place } from "./stage.js";

export interface LoadOptions {
  readonly apps: readonly Place[];
  /** The number of a client's requests that a fallback allows; 0 without a fallback. */
  readonly share: number;
  /** Whether undecided requests are rejected. */
  readonly denies: boolean;
  /** Whether Redis may have charged more than it reported, as known when the response arrives. */
  doubtful(startMs: number, decision: Decision): boolean;
}

const visitors = 12;
/** The pause between two requests of a visitor. */
const paceMs = 15;

/**
 * A steady load. Each visitor acts as one client after the other; a client sends a few more requests than its limit, to all apps in
 * turn. Every response is compared with its decision, and every decision with the ones before it.
 */
export class Load {
  readonly decisions = { all: 0, degraded: 0 };
  /** What went wrong: missing responses, wrong responses, wrong decisions. */
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

  /** Stops following the current clients, because Redis has lost its counts. */
  forget(): void {
    this.#accounts = new Map();
  }

  /** The clients that were followed to their end. */
  get accounts(): ReadonlyMap<string, Account> {
    return this.#accounts;
  }

  async #visit(): Promise<void> {
    while (this.#running) {
      const client = `client-${this.#clients++}`;
      const account = new Account(capacity, this.#options.share);
      const accounts = this.#accounts;
      accounts.set(client, account);
      // Each client library's apps have their own fallback, unknown to the others.
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

  /** Sends twice a client's limit at once, to all apps. Returns whether Redis decided all of them, exactly. */
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

/** What is wrong with a response to a request with this decision; undefined if nothing is. */
function falsehood(decision: Decision, { status, headers, body }: Answer, denies: boolean): string | undefined {
  const { allowed, degraded, remaining } = decision;
  const expected = allowed ? 200 : degraded && denies ? 503 : 429;
  if (status !== expected) return `status ${status} in place of ${expected}`;
  const limitHeaders = Object.keys(headers).filter((name) => /^(x-)?ratelimit/.test(name));
  if (degraded && limitHeaders.length > 0) return `${limitHeaders} where nothing is known`;
  if (!degraded && !`${headers["ratelimit"]},`.includes(`"client";r=${remaining};`))
    return `RateLimit: ${headers["ratelimit"]} where ${remaining} remain`;
  if (allowed) return undefined;
  if (!/^[1-9]\d*$/.test(headers["retry-after"] ?? "")) return `Retry-After: ${headers["retry-after"]}`;
  const problem = status === 503 ? "temporary-reduced-capacity" : "quota-exceeded";
  return body.includes(problem) ? undefined : `a body that is no ${problem}: ${body}`;
}
