import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Changes } from "../src/changes.js";
import type { RedisClient } from "../src/clients/client.js";

const maxAgeMs = 1000;

describe("announced changes, by the server's clock", () => {
  let steadyMs: number;
  let replies: (() => void)[];
  let serverMs: number;
  let announcement: string;
  const client = {
    isReady: true,
    send: () => [
      new Promise((resolve) => {
        const reply = [String(serverMs * 1000), announcement, announcement];
        replies.push(() => resolve(reply));
      }),
    ],
  } as unknown as RedisClient;

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] });
    [steadyMs, serverMs, replies, announcement] = [performance.now(), 1_789_948_800_000, [], "1"];
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const pass = (ms: number): void => {
    vi.advanceTimersByTime(ms);
    steadyMs = performance.now();
    serverMs += ms;
  };
  /** A read that takes so long. */
  const read = async (changes: Changes, roundTripMs = 1): Promise<void> => {
    changes.read(steadyMs);
    await new Promise(setImmediate);
    pass(roundTripMs);
    for (const reply of replies.splice(0)) reply();
    await new Promise(setImmediate);
  };
  /** A state that is just asked for, after a read. */
  const startedWith = async (changes: Changes): Promise<number> => {
    await read(changes);
    pass(1200);
    return steadyMs;
  };

  it("a state holds while the reads are equal, and until maxAgeMs after the last of them", async () => {
    const changes = new Changes(client, "key", undefined, maxAgeMs);
    const sentMs = await startedWith(changes);
    expect(changes.holds(sentMs, steadyMs)).toBe(false);
    for (let i = 0; i < 20; i++) {
      await read(changes, 30);
      expect(changes.holds(sentMs, steadyMs)).toBe(true);
      pass(800);
    }
    pass(170);
    expect(changes.holds(sentMs, steadyMs)).toBe(true);
    pass(1);
    expect(changes.holds(sentMs, steadyMs)).toBe(false);
    await read(changes);
    expect(changes.holds(sentMs, steadyMs)).toBe(true);
    pass(800);
    announcement = "2";
    await read(changes);
    expect(changes.holds(sentMs, steadyMs)).toBe(false);
  });

  it.each([-3_600_000, -20, 20, 3_600_000])("a clock that jumps by %i ms counts as a change", async (jumpMs) => {
    const changes = new Changes(client, "key", undefined, maxAgeMs);
    const sentMs = await startedWith(changes);
    await read(changes);
    expect(changes.holds(sentMs, steadyMs)).toBe(true);
    pass(800);
    serverMs += jumpMs;
    await read(changes);
    expect(changes.holds(sentMs, steadyMs)).toBe(false);
  });
});
