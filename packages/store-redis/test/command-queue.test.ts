import { AsyncLocalStorage } from "node:async_hooks";
import { fixedWindow } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { RedisClient } from "../src/clients/client.js";
import { CommandQueue } from "../src/command-queue.js";
import { KnownLimits } from "../src/limits.js";
import { Peek } from "../src/steps.js";

const known = new KnownLimits(undefined).get(createLimit("api", fixedWindow({ limit: 1, window: "1m" })));
const peekWithin = (timeoutMs: number): Peek => new Peek(known, "key", timeoutMs);

/** A client of one server. */
const clientThat = (send: RedisClient["send"]): RedisClient => ({
  isCluster: false,
  keepsOrder: true,
  database: 0,
  keyPrefix: "",
  isReady: true,
  wake: () => undefined,
  send,
  slotOf: () => 0,
  serverOf: () => "",
});

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("a client that is not ready is polled only while requests wait for it", async () => {
  let looks = 0;
  const client = Object.defineProperty(
    clientThat(() => expect.fail("It is not ready")),
    "isReady",
    {
      get() {
        looks++;
        return false;
      },
    },
  );
  const queue = new CommandQueue(client, { clock: undefined, wantsState: false });
  const ask = async (timeoutMs: number): Promise<void> => {
    const look = peekWithin(timeoutMs);
    queue.add(look);
    await expect(look.answer).rejects.toMatchObject({ code: "FLOODGATE_STORE_TIMEOUT" });
  };
  for (let i = 1; i <= 2; i++) {
    const asked = Promise.all([ask(30), ask(90)]);
    await vi.advanceTimersByTimeAsync(89);
    expect(vi.getTimerCount()).toBeGreaterThan(0);
    await vi.advanceTimersByTimeAsync(11);
    await asked;
    expect([looks > 10 * i, vi.getTimerCount()]).toEqual([true, 0]);
  }
});

it("a long queue is sent in larger rounds, without the requests that have timed out", async () => {
  const rounds: number[] = [];
  const pending: ((reply: unknown) => void)[] = [];
  const client = clientThat((runs) =>
    runs.map(({ args }) => {
      rounds.push(Number(args[1]));
      return new Promise((resolve) => pending.push(resolve));
    }),
  );
  const answer = async (): Promise<void> => {
    const count = rounds[rounds.length - pending.length] as number;
    pending.shift()?.([Date.now() * 1000, ...Array.from({ length: count }, () => [1, 0]).flat()]);
    await vi.advanceTimersByTimeAsync(0);
  };
  const queue = new CommandQueue(client, { clock: undefined, wantsState: false });
  const ask = (count: number, timeoutMs: number): PromiseSettledResult<unknown>[] => {
    const settled: PromiseSettledResult<unknown>[] = [];
    for (let i = 0; i < count; i++) {
      const look = peekWithin(timeoutMs);
      look.answer.then(
        (value) => settled.push({ status: "fulfilled", value }),
        (reason) => settled.push({ status: "rejected", reason }),
      );
      queue.add(look);
    }
    return settled;
  };

  const first = ask(400, 10_000);
  await vi.advanceTimersByTimeAsync(0);
  // One round until the server's clock is known, then two at a time.
  expect(rounds).toEqual([128]);
  const hasty = ask(100, 50);
  await vi.advanceTimersByTimeAsync(60);
  expect(hasty.every(({ status }) => status === "rejected")).toBe(true);
  const last = ask(10, 10_000);
  while (pending.length > 0) await answer();
  expect(rounds).toEqual([128, 128, 64, 64, 26]);
  expect([hasty.length, first.length, last.length, first.concat(last).every(({ status }) => status === "fulfilled")]).toEqual([
    100,
    400,
    10,
    true,
  ]);
});

it("each round runs in the async context of a request that waits, where tracers attach its span", async () => {
  const request = new AsyncLocalStorage<{ waits: boolean }>();
  const waits: unknown[] = [];
  const pending: (() => void)[] = [];
  const answer = (): void => pending.shift()?.();
  const client = clientThat((runs) => {
    waits.push(request.getStore()?.waits);
    return runs.map(({ args }) => {
      const reply = [Date.now() * 1000, ...Array.from({ length: Number(args[1]) }, () => [1, 0]).flat()];
      return new Promise((resolve) => pending.push(() => resolve(reply)));
    });
  });
  const queue = new CommandQueue(client, { clock: undefined, wantsState: false });
  const ask = async (): Promise<void> => {
    const context = { waits: true };
    const look = peekWithin(10_000);
    await request.run(context, async () => {
      queue.add(look);
      await look.answer;
      expect(request.getStore()).toBe(context);
    });
    context.waits = false;
  };
  // The second one waits for the round of the first one, and so on.
  const first = ask();
  await vi.advanceTimersByTimeAsync(0);
  const others: Promise<void>[] = [];
  for (let i = 0; i < 5; i++) {
    others.push(ask(), ask());
    answer();
    await vi.advanceTimersByTimeAsync(0);
  }
  while (pending.length > 0) {
    answer();
    await vi.advanceTimersByTimeAsync(0);
  }
  await Promise.all([first, ...others]);
  expect(waits.length).toBeGreaterThan(5);
  expect(new Set(waits)).toEqual(new Set([true]));
});
