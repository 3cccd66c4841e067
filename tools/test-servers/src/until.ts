import { setTimeout as sleep } from "node:timers/promises";

const limitMs = 15_000;

/**
 * Asks again and again until the answer is yes. A question that fails has no answer yet: servers that change roles break connections.
 * @throws Error where it is not within 15 seconds.
 */
export async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const endMs = Date.now() + limitMs;
  let cause: unknown;
  for (;;) {
    try {
      if (await condition()) return;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    if (Date.now() > endMs) throw new Error(`Waited ${limitMs} ms in vain until ${what}.`, { cause });
    await sleep(10);
  }
}
