import { expect, it, vi } from "vitest";
import { senderOf } from "../../src/share/redis.js";

it("while Redis hangs, at most 100 commands wait for it; when it answers, more are sent", async () => {
  const replies: (() => void)[] = [];
  const call = vi.fn(() => new Promise((resolve) => replies.push(() => resolve("OK"))));
  const send = senderOf({ status: "ready", connect: async () => undefined, call });
  const sent = Array.from({ length: 150 }, (_, i) => send("key", "SET", String(i)));
  const outcomes = Promise.allSettled(sent);
  await expect.poll(() => call).toHaveBeenCalledTimes(100);
  for (const reply of replies) reply();
  expect((await outcomes).map(({ status }) => status)).toEqual([...Array(100).fill("fulfilled"), ...Array(50).fill("rejected")]);
  void send("key", "GET").catch(() => undefined);
  await expect.poll(() => call).toHaveBeenCalledTimes(101);
  for (const reply of replies) reply();
});
