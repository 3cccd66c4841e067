import { setImmediate } from "node:timers/promises";
import { consumeAll, createLimiter, type Decision, FloodgateError } from "@floodgate/core";
import { createLimit, type Limit } from "@floodgate/core/store";
import * as fc from "fast-check";
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { redisStore } from "../src/index.js";
import { isSound, mutated, mutation, strange } from "./hostile-replies.js";
import { encodeReply, HostileServer, type Reply } from "./hostile-server.js";
import { libraries } from "./libraries.js";
import { tenAnHour } from "./policies.js";
import { ReplyError } from "./resp.js";
import { useRedis } from "./use-redis.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

let redis: Redis;
useRedis((_server, client) => {
  redis = client;
});

let hostile: HostileServer;
beforeAll(async () => {
  hostile = await HostileServer.start();
});
afterAll(() => hostile?.stop());

/** Process events that must not occur. */
const unhandled: unknown[] = [];
const note = (error: unknown): void => void unhandled.push(error);
beforeEach(() => {
  unhandled.length = 0;
  process.on("unhandledRejection", note).on("uncaughtException", note);
});
afterEach(() => {
  process.off("unhandledRejection", note).off("uncaughtException", note);
  hostile.cut();
});

/** The replies of a real Redis. */
async function honest(command: readonly string[]): Promise<unknown> {
  const [name, ...args] = command as [string, ...string[]];
  return redis.call(name, ...args).catch((error: Error) => new ReplyError(error.message));
}

let worlds = 0;

type Answered = readonly [Limit, unknown];

/** Calls every method of limiters on the hostile server, and returns their answers. */
async function answersOf(library: "ioredis 6" | "redis 6", timeoutMs: number, requests: number): Promise<readonly Answered[]> {
  const { client } = await libraries[library].connect(hostile.port);
  try {
    const store = redisStore(client, { prefix: `hostile-${worlds++}` });
    const limited = tenAnHour.map((policy, i) => {
      const name = `limit-${i}`;
      const limiter = createLimiter({ name, policy, store, timeoutMs, onEvent: () => undefined });
      return { limit: createLimit(name, policy), limiter };
    });
    const answers: Answered[] = [];
    const kept = async (limit: Limit, asked: unknown): Promise<unknown> => {
      const answer = await Promise.resolve(asked).catch((error: unknown) => error);
      answers.push([limit, answer]);
      return answer;
    };
    for (let i = 0; i < requests; i++) {
      const { limit, limiter } = limited[i % limited.length] as (typeof limited)[number];
      const other = limited[(i + 1) % limited.length] as (typeof limited)[number];
      const both = consumeAll([
        { limiter, key: "b" },
        { limiter: other.limiter, key: "b", cost: 6 },
      ]);
      const [decision] = await Promise.all([
        kept(limit, limiter.consume("a", { cost: 4 })),
        kept(limit, limiter.peek("a")),
        kept(
          limit,
          both.then(({ all }) => all[0]),
        ),
        kept(
          other.limit,
          both.then(({ all }) => all[1]),
        ),
      ]);
      if (!(decision instanceof Error)) await kept(limit, limiter.settle("a", decision as Decision, 6));
      await kept(limit, limiter.reset("b"));
    }
    return answers;
  } finally {
    // Libraries wait for outstanding replies before they close, and these may never come.
    if ("disconnect" in client && "status" in client) (client as unknown as Redis).disconnect();
    else (client as unknown as { destroy(): void }).destroy();
  }
}

/** Asserts that every answer is within bounds or reports a store error. */
function expectSound(answers: readonly Answered[]): void {
  for (const [limit, answer] of answers) {
    if (answer instanceof Error) {
      expect(answer).toBeInstanceOf(FloodgateError);
      expect(answer.message).not.toMatch(/[^\n\t\P{C}]/u);
    } else if (!(answer as Decision | undefined)?.degraded) {
      expect([answer, isSound(answer, limit)]).toEqual([answer, true]);
    }
  }
  expect(unhandled).toEqual([]);
}

const bytes = (text: string): Buffer => Buffer.from(text, "latin1");

/** Replies without a readable decision. */
const unreadable: Readonly<Record<string, Reply>> = {
  "a text": bytes("+OK\r\n"),
  "a RESP2 null": bytes("*-1\r\n"),
  "a RESP3 null": bytes("_\r\n"),
  "an empty list": bytes("*0\r\n"),
  "a list of nulls": bytes("*4\r\n$-1\r\n*-1\r\n$-1\r\n$-1\r\n"),
  "lists within lists": bytes(`${"*1\r\n".repeat(500)}:1\r\n`),
  "a list of a negative length": bytes("*-5\r\n"),
  "a list of a billion elements that do not come": bytes("*1000000000\r\n:1\r\n"),
  "a text of a billion bytes that do not come": bytes("$1000000000\r\nabc"),
  "a list that is cut": bytes("*5\r\n:1\r\n:2\r\n"),
  "a huge integer": bytes(":99999999999999999999999999\r\n"),
  "an error with control characters": bytes("-ERR \x1b[31mred\x07\x9b\r\n"),
  "an error without a word": bytes("-\r\n"),
  "a script that it never knows": bytes("-NOSCRIPT No matching script.\r\n"),
  "another server's name": bytes("-MOVED 1 127.0.0.1:1\r\n"),
  HTTP: bytes("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
  zeros: Buffer.alloc(4096),
  "nothing at all": Buffer.alloc(0),
  "the end of the connection": (socket) => socket.end(),
  "a reset of the connection": (socket) => socket.resetAndDestroy(),
  "half a list and a reset": (socket) => socket.write("*9\r\n:1\r\n:2\r\n:", () => socket.resetAndDestroy()),
  "a list that never ends": (socket) => {
    socket.write("*1000000000\r\n");
    const more = setInterval(() => socket.write(":1\r\n".repeat(1000)), 1);
    socket.on("close", () => clearInterval(more));
  },
};

describe.each(["ioredis 6", "redis 6"] as const)("a server that sends %s invalid replies", (library) => {
  it.each(Object.entries(unreadable))("is treated as failed, and every request is decided: %s", async (_, answer) => {
    hostile.answer = () => answer;
    const memory = (): number => process.memoryUsage().external + process.memoryUsage().heapUsed;
    const before = memory();
    const answers = await answersOf(library, 100, 3);
    expectSound(answers);
    const decisions = answers.filter(([, given]) => given instanceof Object && "allowed" in given);
    expect(decisions.map(([, given]) => (given as Decision).degraded)).toEqual(decisions.map(() => true));
    expect(decisions.length).toBeGreaterThanOrEqual(9);
    // The store allocates nothing for lengths that a reply claims. (Libraries may; for these replies it is little.)
    expect(memory() - before).toBeLessThan(300e6);
    await setImmediate();
    expect(unhandled).toEqual([]);
  });

  it("made of random lists and bytes: every decision is in time, and within bounds or degraded", async () => {
    const lists = fc.array(strange, { maxLength: 12 }).map(encodeReply);
    const raw = fc.uint8Array({ maxLength: 40 }).map((list) => Buffer.from(list));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof({ weight: 3, arbitrary: lists }, raw), { minLength: 1, maxLength: 6 }), async (replies) => {
        let sent = 0;
        hostile.answer = () => replies[sent++ % replies.length] as Buffer;
        expectSound(await answersOf(library, 60, 2));
      }),
      { numRuns: 12 },
    );
  });

  it("made of valid replies with changes: every decision is in time, and within bounds or degraded", async () => {
    // Few changes, so that the breaker stays closed and most replies are read.
    const mostlyHonest = fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, mutation);
    await fc.assert(
      fc.asyncProperty(fc.array(mostlyHonest, { minLength: 4, maxLength: 9 }), async (mutations) => {
        await redis.flushall();
        let sent = 0;
        hostile.answer = async (command) => {
          const reply = await honest(command);
          const change = mutations[sent++ % mutations.length];
          return encodeReply(Array.isArray(reply) && change ? mutated(reply, change) : reply);
        };
        expectSound(await answersOf(library, 80, 7));
      }),
      { numRuns: 20 },
    );
  });

  it("is trusted while its replies are valid", async () => {
    await redis.flushall();
    hostile.answer = async (command) => encodeReply(await honest(command));
    const answers = await answersOf(library, 20_000, 7);
    expectSound(answers);
    expect(answers.filter(([, given]) => given instanceof Error || (given as Decision | undefined)?.degraded)).toEqual([]);
  });
});
