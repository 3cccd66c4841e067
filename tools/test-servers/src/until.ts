import { setTimeout as sleep } from "node:timers/promises";

const limitMs = 15_000;

/**
 * Polls a condition until it is true. Errors count as not yet: servers that change roles break connections.
 * @throws Error after 15 seconds.
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
