import { AsyncLocalStorage } from "node:async_hooks";
import fc from "fast-check";
import { expect, it } from "vitest";
import { runs } from "../../../../test/runs.js";
import { turn } from "../../../conformance/src/adapter/world.js";
import { memoryStore } from "../../../store-memory/src/index.js";
import { type Outcome, RateLimit } from "../../src/adapter.js";
import type { PlainRule, RuleUser } from "../../src/rules.js";
import type { Blocked, Check, Decision, Limit, Store } from "../../src/store.js";
import { reader } from "../reader.js";

interface Request {
  readonly path: string;
  readonly user: string | undefined;
  readonly plan: string | undefined;
  readonly tokens: number;
  readonly status: number;
  /** The function of the app that fails. */
  readonly fails: "skip" | "key" | undefined;
}

const limit = fc.oneof({ weight: 1, arbitrary: fc.constant(0) }, { weight: 9, arbitrary: fc.integer({ min: 1, max: 4 }) });
const spec = fc.record({
  name: fc.constantFrom("a", "b", "c", "d"),
  algorithm: fc.constantFrom("fixed-window", "sliding-window-log", "concurrency"),
  seconds: fc.constantFrom(3600, 86_400),
  limit,
  pro: fc.option(limit, { nil: undefined }),
  path: fc.option(fc.constantFrom("/x", "/y"), { nil: undefined }),
  key: fc.constantFrom("global", "user"),
  shadow: fc.boolean(),
  cost: fc.constantFrom<1 | "tokens">(1, "tokens"),
  settles: fc.boolean(),
  bans: fc.boolean(),
});
type Spec = typeof spec extends fc.Arbitrary<infer T> ? T : never;
const specs = fc.uniqueArray(spec, { selector: ({ name }) => name, minLength: 1, maxLength: 4 });

function ruleOf({ name, algorithm, seconds, limit, pro, path, key, shadow, cost, settles, bans }: Spec): PlainRule {
  const time = `${seconds}s` as const;
  return {
    name,
    policy: algorithm === "concurrency" ? { algorithm, limit, hold: time } : { algorithm, limit, window: time },
    key,
    cost,
    onMissingKey: "skip",
    mode: shadow ? "shadow" : "enforce",
    ...(pro !== undefined && { plans: { pro: { limit: pro } } }),
    ...(path !== undefined && { match: { path } }),
    ...(settles && algorithm !== "concurrency" && { settle: "tokens" }),
    ...(bans && { ban: { after: 2, within: "1h", for: "1d" } }),
  };
}

const request: fc.Arbitrary<Request> = fc.record({
  path: fc.constantFrom("/x", "/y"),
  user: fc.constantFrom("ann", "bob", undefined),
  plan: fc.constantFrom("pro", undefined),
  tokens: fc.nat(3),
  status: fc.constantFrom(200, 500),
  fails: fc.option(fc.constantFrom("skip", "key"), { freq: 8, nil: undefined }),
});
const step = fc.record({
  does: fc.constantFrom("asks", "asks", "opens", "opens", "opens", "opens", "offers", "ends", "forwards"),
  request,
  rules: specs,
  which: fc.nat(9),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A call of the store. */
interface Call {
  /** The method, the rule's name, the kind of state, the limit and the key. */
  readonly what: string;
  readonly units: number;
  answer: unknown;
}

/** One way of a request through the middleware. */
interface Pass {
  readonly request: Request;
  readonly rules: readonly Spec[];
  /** The passes of the request before. */
  readonly before: readonly Pass[];
  readonly calls: Call[];
  /** How many events the request has had. */
  requests: number;
  outcome: Outcome | "fails" | undefined;
  ended: boolean;
}

/** Everything slow waits here until the test lets it go on. */
class Gates {
  readonly #waiting: (() => void)[] = [];

  async pass<T>(work: () => T): Promise<T> {
    await new Promise<void>((go) => this.#waiting.push(go));
    return work();
  }

  /** Whether one was waiting. */
  open(which: number): boolean {
    const [go] = this.#waiting.splice(which % Math.max(1, this.#waiting.length), 1);
    go?.();
    return go !== undefined;
  }
}

const current = new AsyncLocalStorage<Pass>();
const textOf = (method: string, { name, policy }: Limit, key: string): string =>
  `${method} ${name} ${policy.stateKind}:${policy.quota} ${key}`;

/** A store whose calls wait before and after their work, and are noted under the pass that makes them. */
function slowStore(gates: Gates): Store<"async"> {
  const store = memoryStore({ maxKeys: 1000, clock: () => 1e12 });
  const call = async <T>(what: string, units: number, work: () => T): Promise<T> => {
    const noted: Call = { what, units, answer: undefined };
    current.getStore()?.calls.push(noted);
    noted.answer = await gates.pass(work);
    return gates.pass(() => noted.answer as T);
  };
  const all = (checks: readonly Check[]): string =>
    checks.map(({ limit, key, cost, dryRun }) => `${textOf(dryRun ? "look" : "consume", limit, key)} ${cost}`).join();
  return {
    mode: "async",
    keepsDeadlines: true,
    consume: (limit, key, cost) => call(all([{ limit, key, cost }]), 0, () => store.consume(limit, key, cost)),
    consumeAll: (checks) => call(all(checks), 0, () => store.consumeAll(checks)),
    peek: (limit, key) => call(textOf("peek", limit, key), 0, () => store.peek(limit, key)),
    settle: (limit, key, charge, cost) => call(textOf("settle", limit, key), cost, () => store.settle(limit, key, charge, cost)),
    renew: (limit, key, charge) => call(textOf("renew", limit, key), 0, () => store.renew?.(limit, key, charge)),
    block: (name, key, forMs, kind) => call(`block ${name} ${key} ${kind}`, forMs, () => store.block(name, key, forMs, kind)),
    unblock: (name, key) => call(`unblock ${name} ${key}`, 0, () => store.unblock(name, key)),
    reset: (limit, key) => call(textOf("reset", limit, key), 0, () => store.reset(limit, key)),
    keyState: (limit, key) => call(textOf("keyState", limit, key), 0, () => store.keyState(limit, key)),
  };
}

/** What a pass must have asked of the store, by the rules that were in force when it began and the store's answers; undefined if it fails. */
function expectedCalls({ request, rules, before, calls, ended }: Pass): string[] | undefined {
  if (request.fails === "skip") return rules.every(({ shadow }) => shadow) ? [] : undefined;
  const counted = before.flatMap((pass) => (allows(pass.outcome) ? checkedIn(pass) : []));
  const matching = rules.filter(({ path, name }) => (path ?? request.path) === request.path && !counted.includes(name));
  if (request.fails === "key" && matching.some(({ key, shadow }) => key === "user" && !shadow)) return undefined;
  const checks = matching.filter((rule) => counts(rule, request)).map((rule) => ({ rule, ...limitOf(rule, request) }));
  const isZero = checks.some(({ rule, limit }) => limit === 0 && !rule.shadow);
  const asked = isZero ? [] : checks.filter(({ limit }) => limit > 0);
  if (asked.length === 0) return [];
  const consumed = `${asked.map(({ text, cost }) => `consume ${text} ${cost}`).join()} 0`;
  const answers = [calls.find(({ what }) => `${what} 0` === consumed)?.answer].flat() as (Decision | undefined)[];
  const passes = answers.every((answer, i) => answer?.allowed || asked[i]?.rule.shadow);
  const bans = asked.filter(({ rule }, i) => rule.bans && answers[i]?.allowed === false && answers[i]?.blocked === undefined);
  const changes = asked.flatMap(({ rule, text }, i) => {
    if (!ended || !passes || answers[i]?.allowed !== true) return [];
    if (rule.algorithm === "concurrency" || request.status === 500) return [`settle ${text} 0`];
    return rule.settles ? [`settle ${text} ${request.tokens}`] : [];
  });
  return [consumed, ...bans.flatMap(({ rule, key }) => banCalls(rule, key, calls)), ...changes];
}

/** Counts the rejection; the last one begins the ban, and forgets the rejections. */
function banCalls({ name }: Spec, key: string, calls: readonly Call[]): string[] {
  const rejections = `${name}·rejections sliding-window-log 3600000:2 ${key}`;
  const counted = calls.find(({ what }) => what === `consume ${rejections} 1`)?.answer as Decision | undefined;
  if (counted?.allowed === true && counted.remaining > 0) return [`consume ${rejections} 1 0`];
  const block = `block ${name} ${key} ban`;
  const { begun } = (calls.find(({ what }) => what === block)?.answer ?? {}) as Partial<Blocked>;
  return [`consume ${rejections} 1 0`, `${block} 86400000`, ...(begun ? [`reset ${rejections} 0`] : [])];
}

const allows = (outcome: Pass["outcome"]): boolean => typeof outcome === "object" && outcome.action === "pass";

/** The names of the rules that have counted a pass. */
const checkedIn = ({ outcome }: Pass): string[] => (outcome as Outcome).checks.map(({ rule }) => rule.name);

function counts({ key, cost }: Spec, { user, tokens, fails }: Request): boolean {
  return (cost === 1 || tokens > 0) && (key === "global" || (user !== undefined && fails !== "key"));
}

function limitOf({ name, algorithm, seconds, limit, pro, key, cost }: Spec, { user, plan, tokens }: Request) {
  const of = (plan === "pro" ? pro : undefined) ?? limit;
  const text = key === "global" ? "global" : (user as string);
  return { text: `${name} ${algorithm} ${seconds * 1000}:${of} ${text}`, limit: of, key: text, cost: cost === 1 ? 1 : tokens };
}

/** A middleware whose rules the test replaces while requests are in flight. */
class LiveApp {
  readonly passes: Pass[] = [];
  readonly #gates = new Gates();
  readonly #users: RuleUser[] = [];
  readonly #limit: RateLimit<Request>;
  #rules: readonly Spec[];

  constructor(rules: readonly Spec[]) {
    this.#rules = rules;
    const subscribe = (user: RuleUser): (() => void) => {
      this.#users.push(user);
      return () => undefined;
    };
    const store = slowStore(this.#gates);
    this.#limit = new RateLimit<Request>(
      "test",
      {
        rules: { current: { rules: rules.map(ruleOf) }, subscribe },
        store,
        skip: (request) => this.#slow(() => request.fails === "skip" && fail()),
        keys: { user: ({ fails, user }) => this.#slow(() => (fails === "key" ? fail() : user)) },
        costs: { tokens: ({ tokens }) => this.#slow(() => tokens) },
        plan: ({ plan }) => this.#slow(() => plan),
        refundWhen: "5xx",
        onEvent: ({ type }) => {
          const pass = current.getStore();
          if (pass !== undefined && type === "request") pass.requests++;
        },
      },
      [],
      { ...reader, path: ({ path }) => path },
      () => store,
    );
  }

  offer(rules: readonly Spec[]): void {
    const ready = this.#users.map((user) => user.prepare({ rules: rules.map(ruleOf) }));
    this.#rules = rules;
    for (const activate of ready) activate();
  }

  open(which: number): boolean {
    return this.#gates.open(which);
  }

  ask(request: Request, before: readonly Pass[] = []): void {
    const pass: Pass = { request, rules: this.#rules, before, calls: [], requests: 0, outcome: undefined, ended: false };
    this.passes.push(pass);
    current.run(pass, async () => {
      try {
        pass.outcome = await this.#limit.decide(request);
      } catch {
        pass.outcome = "fails";
      }
    });
  }

  /** Sends a request that was let pass through the middleware again. */
  forward(pass: Pass): void {
    if (allows(pass.outcome) && !this.passes.some(({ before }) => before.includes(pass))) this.ask(pass.request, [...pass.before, pass]);
  }

  end(pass: Pass): void {
    if (pass.ended || !allows(pass.outcome)) return;
    pass.ended = true;
    (pass.outcome as Outcome).afterResponse?.(pass.request.status);
  }

  /** Lets everything go on until nothing is in flight. */
  async settled(): Promise<void> {
    do await turn();
    while (this.#gates.open(0));
  }

  close(): void {
    this.#limit.close();
  }

  #slow<T>(work: () => T): Promise<T> {
    return this.#gates.pass(work);
  }
}

function fail(): never {
  throw new Error("A function of the app fails");
}

it("each request is counted, banned and settled by the rules that were in force when it came, whatever replaces them", async () => {
  const play = async (first: readonly Spec[], script: readonly Step[]): Promise<void> => {
    const app = new LiveApp(first);
    const { passes } = app;
    for (const { does, request, rules, which } of script) {
      const pass = passes[which % Math.max(1, passes.length)];
      if (does === "asks") app.ask({ ...request });
      else if (does === "offers") app.offer(rules);
      else if (does === "opens") app.open(which);
      else if (pass !== undefined && does === "ends") app.end(pass);
      else if (pass !== undefined) app.forward(pass);
      await turn();
    }
    await app.settled();
    for (const pass of passes) app.end(pass);
    await app.settled();
    for (const pass of passes) {
      const expected = expectedCalls(pass);
      const calls = pass.calls.map(({ what, units }) => `${what} ${units}`);
      expect([pass.outcome === "fails", calls.sort()]).toEqual([expected === undefined, (expected ?? []).sort()]);
      if (pass.before.length === 0) expect(pass.requests).toBe(expected === undefined ? 0 : 1);
    }
    app.close();
  };
  await fc.assert(fc.asyncProperty(specs, fc.array(step, { minLength: 1, maxLength: 40 }), play), runs(400));
});
