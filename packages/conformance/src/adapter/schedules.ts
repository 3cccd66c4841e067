import assert from "node:assert/strict";
import { type FloodgateEvent, leakyBucket, tokenBucket } from "@floodgate/core";
import fc from "fast-check";
import type { RequestView } from "./adapter.js";
import { type Asked, type Client, Http2Client, PipeliningClient, until } from "./clients.js";
import { Timers } from "./timers.js";
import type { AdapterSuite, App, Web } from "./web.js";
import { gate, turn } from "./world.js";

const runs = { numRuns: 40, endOnFailure: true };

/** One request of a schedule. */
interface Planned {
  /** Its real cost. */
  readonly used: number;
  /** How many turns of the event loop its handler takes. Undefined: it waits until the client has left. */
  readonly turns: number | undefined;
  readonly answerBytes: number;
  readonly streams: boolean;
  /** Undefined: a GET. */
  readonly bodyBytes: number | undefined;
  /** JSON bodies are read before any limit; others are never read. */
  readonly json: boolean;
}

/** One connection of a schedule. */
interface Connection {
  readonly requests: readonly Planned[];
  /** How many requests are sent together. */
  readonly atOnce: number;
  readonly reads: boolean;
  /** After how many turns of the event loop the client disconnects. Undefined: after all responses. */
  readonly leavesAfter: number | undefined;
}

const capacity = 1000;
const reserved = 50;

const planned: fc.Arbitrary<Planned> = fc.record({
  // A real cost equal to the reserved one emits no event, so it is left out.
  used: fc.nat({ max: 400 }).filter((used) => used !== reserved),
  turns: fc.oneof({ weight: 5, arbitrary: fc.nat({ max: 8 }) }, { weight: 1, arbitrary: fc.constant(undefined) }),
  answerBytes: fc.oneof(fc.nat({ max: 100 }), fc.nat({ max: 300_000 })),
  streams: fc.boolean(),
  bodyBytes: fc.option(fc.oneof(fc.nat({ max: 100 }), fc.nat({ max: 40_000 })), { nil: undefined }),
  json: fc.boolean(),
});

const connection: fc.Arbitrary<Connection> = fc
  .record({
    requests: fc.array(planned, { minLength: 1, maxLength: 12 }),
    atOnce: fc.integer({ min: 1, max: 12 }),
    reads: fc.boolean(),
    leavesAfter: fc.option(fc.nat({ max: 40 }), { nil: undefined }),
  })
  .map((one) => {
    const mayStay = one.reads && one.requests.every(({ turns }) => turns !== undefined);
    return mayStay ? one : { ...one, leavesAfter: one.leavesAfter ?? 40 };
  });

/** Records the requests of one run and computes the expected budget. */
class Ledger {
  readonly requests = new Map<string, { plan: Planned; left: Promise<void>; counted: ReturnType<typeof gate> }>();
  /** The id and the status of each request that was settled. */
  readonly settled: [string, number | undefined][] = [];
  allowed = 0;
  handled = 0;
  #charged = 0;
  #used = 0;
  #events = 0;
  readonly faults: string[] = [];

  get open(): number {
    return this.allowed - this.#events;
  }

  get left(): number {
    return Math.max(0, capacity - this.#used - this.#charged);
  }

  of(request: RequestView): { id: string; plan: Planned; left: Promise<void>; counted: ReturnType<typeof gate> } {
    const id = request.header("x-id") ?? "";
    return { id, ...(this.requests.get(id) ?? assert.fail(`no request ${id} in this run`)) };
  }

  /** Tracks the budget from events. Mismatches go to `faults`: an exception here would be swallowed. */
  hear(event: FloodgateEvent): void {
    if (event.type === "allowed") {
      if (this.left < reserved) this.faults.push(`allowed a request with ${this.left} left`);
      this.allowed++;
      this.#charged += reserved;
    } else if (event.type === "settled") {
      this.#events++;
      this.#charged -= reserved;
      this.#used += event.cost;
    } else if (event.type === "limited") {
      if (this.left >= reserved) this.faults.push(`rejected a request with ${this.left} left`);
    } else this.faults.push(event.type);
    if ("decision" in event && event.decision !== undefined && event.type !== "settled" && event.decision.remaining !== this.left) {
      this.faults.push(`${event.decision.remaining} reported as remaining, expected ${this.left}`);
    }
  }
}

type Connect = (app: App, reads?: boolean) => Promise<Client>;

/** Random schedules of concurrent requests and disconnecting clients. */
export function scheduleCases({ adapter, describe, it }: AdapterSuite): void {
  const protocols: [string, boolean, Connect][] = [
    ["HTTP/1.1, pipelined", false, ({ server }, reads) => PipeliningClient.connect(server, reads)],
  ];
  if (adapter.http2 === true) protocols.push(["HTTP/2", true, ({ server }, reads) => Http2Client.connect(server, reads)]);

  for (const [protocol, http2, connect] of protocols) {
    describe(`random clients over ${protocol}`, () => {
      it("each charged request is settled once, and the budget is overdrawn by at most the requests in flight", async (web) => {
        let ledger = new Ledger();
        const app = await budget(web, http2, () => ledger);
        let run = 0;
        await fc.assert(
          fc.asyncProperty(fc.array(connection, { minLength: 1, maxLength: 4 }), async (connections) => {
            ledger = new Ledger();
            const prefix = `${++run}`;
            const visits: Promise<void>[] = [];
            for (const [c, one] of connections.entries()) {
              visits.push(visit(await connect(app, one.reads), one, prefix, `${prefix}-${c}`, ledger));
            }
            await Promise.all(visits);
            await until(() => ledger.open === 0, "each charged request to be settled");
            for (let i = 0; i < 5; i++) await turn();
            const { allowed, handled, settled, faults } = ledger;
            assert.deepEqual(faults, []);
            assert.equal(new Set(settled.map(([id]) => id)).size, settled.length, "no request is settled twice");
            assert.deepEqual([settled.length, handled], [allowed, allowed]);
            assert.equal((await app.peek(prefix)).remaining, ledger.left);
          }),
          runs,
        );
      });

      it("a held request is served at its turn, unless its client left earlier", async (web) => {
        const timers = new Timers();
        const follow = (steps: readonly Step[], run: number) => held(web, { http2, connect, timers, run }, steps);
        let run = 0;
        await timers.during(() =>
          fc.assert(
            fc.asyncProperty(fc.array(step, { maxLength: 30 }), (steps) => follow(steps, run++)),
            runs,
          ),
        );
      });
    });
  }
}

/** One step of a schedule. `amount` is the number of requests, or the wait in quarters of a second. */
interface Step {
  readonly who: number;
  readonly what: "ask" | "wait" | "leave";
  readonly amount: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  who: fc.nat({ max: 2 }),
  what: fc.oneof(
    { weight: 4, arbitrary: fc.constant("ask" as const) },
    { weight: 3, arbitrary: fc.constant("wait" as const) },
    { weight: 1, arbitrary: fc.constant("leave" as const) },
  ),
  amount: fc.integer({ min: 1, max: 6 }),
});

/** An app with a budget: each request reserves a cost, and settles the real one when its handler knows it. */
async function budget(web: Web, http2: boolean, ledger: () => Ledger): Promise<App> {
  return web.start({
    http2,
    limits: [
      {
        policy: tokenBucket({ capacity, refill: capacity, every: "365d" }),
        key: "header:x-run",
        cost: reserved,
        onEvent: (event) => ledger().hear(event),
        settle: async (request, response) => {
          const { id, plan, counted } = ledger().of(request);
          ledger().settled.push([id, response?.status]);
          await counted.opened;
          return plan.used;
        },
      },
    ],
    handler: async (request) => {
      const { plan, left, counted } = ledger().of(request);
      ledger().handled++;
      if (plan.turns === undefined) await left;
      else for (let i = 0; i < plan.turns; i++) await turn();
      counted.open();
      const text = "x".repeat(plan.answerBytes);
      return plan.streams ? { chunks: pieces(text) } : { body: text };
    },
  });
}

async function* pieces(text: string): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += 50_000) yield text.slice(at, at + 50_000);
}

/** Runs one client. */
async function visit(client: Client, { requests, atOnce, leavesAfter }: Connection, run: string, name: string, ledger: Ledger) {
  const gone = gate();
  const asked = requests.map((plan, i): Asked => {
    const id = `${name}-${i}`;
    ledger.requests.set(id, { plan, left: gone.opened, counted: gate() });
    const headers = { "x-run": run, "x-id": id };
    if (plan.bodyBytes === undefined) return { headers };
    const type = plan.json ? "application/json" : "application/octet-stream";
    return { headers: { ...headers, "content-type": type }, body: JSON.stringify({ text: "x".repeat(plan.bodyBytes) }) };
  });
  for (let i = 0; i < asked.length; i += atOnce) {
    client.ask(...asked.slice(i, i + atOnce));
    await turn();
  }
  if (leavesAfter !== undefined) for (let i = 0; i < leavesAfter; i++) await turn();
  else {
    await until(() => client.statuses.length === asked.length, "the answers to a client that stays");
    const mine = () => ledger.settled.filter(([id]) => id.startsWith(`${name}-`)).map(([, status]) => status);
    const expected = client.statuses.filter((status) => status === 200);
    await until(() => mine().length === expected.length, "the end of each answer");
    assert.deepEqual(mine(), expected);
  }
  const noticed = client.leave();
  // A server with unread bodies stops reading, and notices the disconnect only when it responds.
  for (let i = 0; i < 5; i++) await turn();
  gone.open();
  await noticed;
}

interface HeldRun {
  readonly http2: boolean;
  readonly connect: Connect;
  readonly timers: Timers;
  readonly run: number;
}

/** Runs a schedule of held requests. Those whose turn came before their client left must have been served, and no others. */
async function held(web: Web, { http2, connect, timers, run }: HeldRun, steps: readonly Step[]): Promise<void> {
  const dueMs = new Map<string, number>();
  const leftMs = new Map<number, number>();
  const served: string[] = [];
  let asking = "";
  let decided = 0;
  let sent = 0;
  const app = await web.start({
    http2,
    limits: [
      {
        name: `queue-${run}`,
        policy: leakyBucket({ capacity: 12, leak: 1, every: "1s" }),
        key: (request) => {
          asking = request.header("x-id") ?? "";
          return "everyone";
        },
        // The store is synchronous, so the event arrives before the next request's key is read.
        onEvent: (event) => {
          decided++;
          if ("decision" in event && event.decision?.allowed === true) dueMs.set(asking, web.nowMs + event.decision.delayMs);
        },
      },
    ],
    handler: (request) => {
      served.push(request.header("x-id") ?? "");
      return {};
    },
  });
  const wait = (ms: number): void => {
    web.nowMs += ms;
    timers.advance(ms);
  };
  const clients = [await connect(app), await connect(app), await connect(app)];
  for (const { who, what, amount } of steps) {
    if (what === "wait") wait(amount * 250);
    else if (leftMs.has(who)) continue;
    else if (what === "leave") {
      await clients[who]?.leave();
      leftMs.set(who, web.nowMs);
    } else {
      for (let i = 0; i < amount; i++) clients[who]?.ask({ headers: { "x-id": `${who}-${sent++}` } });
      await until(() => decided === sent, "the decisions");
    }
    for (let i = 0; i < 3; i++) await turn();
  }
  wait(60_000);
  for (let i = 0; i < 3; i++) await turn();
  const expected = [...dueMs].filter(([id, ms]) => ms <= (leftMs.get(Number(id[0])) ?? Number.POSITIVE_INFINITY));
  assert.deepEqual(served.sort(), expected.map(([id]) => id).sort());
  assert.equal(timers.count, 0);
  for (const client of clients) await client.leave();
}
