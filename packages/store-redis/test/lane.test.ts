import { fixedWindow } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { RedisClient } from "../src/clients/client.js";
import { Lane } from "../src/lane.js";
import { KnownLimits } from "../src/limits.js";
import { Look } from "../src/steps.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("a client that is not ready is polled only while requests wait for it", async () => {
  let looks = 0;
  const client: RedisClient = {
    isCluster: false,
    get isReady() {
      looks++;
      return false;
    },
    wake: () => undefined,
    send: () => expect.fail("It is not ready"),
    slotOf: () => 0,
    serverOf: () => "",
  };
  const lane = new Lane(client, { clock: undefined, wantsState: false });
  const known = new KnownLimits(undefined).get(createLimit("api", fixedWindow({ limit: 1, window: "1m" })));
  const ask = async (timeoutMs: number): Promise<void> => {
    const look = new Look({ known, key: "key", redisKey: "key", blockKey: "key:blocks", cost: 1, shadow: false, look: false }, timeoutMs);
    lane.add(look);
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
