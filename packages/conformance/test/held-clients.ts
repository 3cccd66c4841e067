import assert from "node:assert/strict";
import { concurrency, leakyBucket } from "@floodgate/core";
import { slotsHeld } from "@floodgate/core/rules";
import fc from "fast-check";
import { describe, it, vi } from "vitest";
import { runs } from "../../../test/runs.js";
import type { Adapter } from "../src/adapter/adapter.js";
import { type Client, Http2Client, PipeliningClient, until } from "../src/adapter/clients.js";
import { type App, Web } from "../src/adapter/web.js";
import { turn } from "../src/adapter/world.js";

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

/** Random clients whose requests are held. It is not in the published suite, because it fakes the timers of the process. */
export function heldClients(adapter: Adapter): void {
  describe(`random held clients: ${adapter.name}`, () => {
    for (const http2 of adapter.http2 === true ? [false, true] : [false]) {
      it(`a held request is served at its turn, unless its client left earlier, and gives its slot back (HTTP/${http2 ? 2 : 1.1})`, async () => {
        vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
        const web = new Web(adapter);
        try {
          let schedule = new Schedule();
          const app = await queue(web, http2, () => schedule);
          const connect = (): Promise<Client> => (http2 ? Http2Client : PipeliningClient).connect(app.server);
          let run = 0;
          const play = (steps: readonly Step[]): Promise<void> => {
            schedule = new Schedule();
            return playSchedule(web, connect, schedule, `${run++}`, steps);
          };
          await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 30 }), play), { ...runs(60), endOnFailure: true });
        } finally {
          await web.end();
          vi.useRealTimers();
        }
      });
    }
  });
}

/** What one run has seen. */
class Schedule {
  readonly dueMs = new Map<string, number>();
  readonly served: string[] = [];
  asking = "";
  decided = 0;
}

/** An app that holds the requests of each run in a queue of its own. Each has a slot meanwhile. */
function queue(web: Web, http2: boolean, schedule: () => Schedule): Promise<App> {
  return web.start({
    http2,
    limits: [
      {
        rules: [
          {
            name: "queue",
            policy: leakyBucket({ capacity: 12, leak: 1, every: "1s" }),
            key: (request) => {
              schedule().asking = request.header("x-id") ?? "";
              return request.header("x-run") ?? "";
            },
          },
          { name: "in flight", policy: concurrency({ limit: 1000, hold: "1h" }), key: "global" },
        ],
        // The store is synchronous, so the event arrives before the next request's key is read.
        onEvent: (event) => {
          if (event.type === "request" || !("name" in event) || event.name !== "queue") return;
          const { asking, dueMs } = schedule();
          schedule().decided++;
          if ("decision" in event && event.decision?.allowed === true) dueMs.set(asking, web.nowMs + event.decision.delayMs);
        },
      },
    ],
    handler: (request) => {
      schedule().served.push(request.header("x-id") ?? "");
      return {};
    },
  });
}

/** Runs a schedule of held requests. Those whose turn came before their client left must have been served, and no others. */
async function playSchedule(
  web: Web,
  connect: () => Promise<Client>,
  schedule: Schedule,
  run: string,
  steps: readonly Step[],
): Promise<void> {
  const { dueMs, served } = schedule;
  const leftMs = new Map<number, number>();
  let sent = 0;
  const wait = (ms: number): void => {
    web.nowMs += ms;
    vi.advanceTimersByTime(ms);
  };
  const clients = [await connect(), await connect(), await connect()];
  for (const { who, what, amount } of steps) {
    if (what === "wait") wait(amount * 250);
    else if (leftMs.has(who)) continue;
    else if (what === "leave") {
      await clients[who]?.leave();
      leftMs.set(who, web.nowMs);
    } else {
      for (let i = 0; i < amount; i++) clients[who]?.ask({ headers: { "x-run": run, "x-id": `${who}-${sent++}` } });
      await until(() => schedule.decided === sent, "the decisions");
    }
    for (let i = 0; i < 3; i++) await turn();
  }
  wait(60_000);
  for (let i = 0; i < 3; i++) await turn();
  const expected = [...dueMs].filter(([id, ms]) => ms <= (leftMs.get(Number(id[0])) ?? Number.POSITIVE_INFINITY));
  assert.deepEqual(served.sort(), expected.map(([id]) => id).sort());
  for (const client of clients) await client.leave();
  await until(() => slotsHeld().length === 0, "the slots");
  assert.equal(vi.getTimerCount(), 0);
}
