import assert from "node:assert/strict";
import { type FloodgateEvent, tokenBucket } from "@floodgate/core";
import fc from "fast-check";
import type { RequestView } from "./adapter.js";
import { type Asked, type Client, Http2Client, PipeliningClient, until } from "./clients.js";
import type { AdapterSuite, App, Web } from "./web.js";
import { gate, turn, turns } from "./world.js";

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
    if (event.type === "request") return;
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
export function scheduleCases({ adapter, effort, it }: AdapterSuite): void {
  const protocols: [string, boolean, Connect][] = [
    ["HTTP/1.1, pipelined", false, ({ server }, reads) => PipeliningClient.connect(server, reads)],
  ];
  if (adapter.http2 === true) protocols.push(["HTTP/2", true, ({ server }, reads) => Http2Client.connect(server, reads)]);

  for (const [protocol, http2, connect] of protocols) {
    it(`random clients over ${protocol}: each charged request is settled once, and the budget is overdrawn by at most the requests in flight`, async (web) => {
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
          await turns(5);
          const { allowed, handled, settled, faults } = ledger;
          assert.deepEqual(faults, []);
          assert.equal(new Set(settled.map(([id]) => id)).size, settled.length, "no request is settled twice");
          assert.deepEqual([settled.length, handled], [allowed, allowed]);
          assert.equal((await app.peek(prefix)).remaining, ledger.left);
        }),
        { numRuns: Math.ceil(40 * effort), endOnFailure: true },
      );
    });
  }
}

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
      else await turns(plan.turns);
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
  if (leavesAfter !== undefined) await turns(leavesAfter);
  else {
    await until(() => client.statuses.length === asked.length, "the answers to a client that stays");
    const mine = () => ledger.settled.filter(([id]) => id.startsWith(`${name}-`)).map(([, status]) => status);
    const expected = client.statuses.filter((status) => status === 200);
    await until(() => mine().length === expected.length, "the end of each answer");
    assert.deepEqual(mine(), expected);
  }
  const failures = client.statuses.filter((status) => status !== 200 && status !== 429);
  assert.deepEqual(failures, [], "the app fails for no request");
  const noticed = client.leave();
  // A server with unread bodies stops reading, and notices the disconnect only when it responds.
  await turns(5);
  gone.open();
  await noticed;
}
