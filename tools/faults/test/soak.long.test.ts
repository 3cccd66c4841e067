import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { expect, it } from "vitest";
import { bundled } from "./bundled.js";
import type { Sample } from "./soak/child.js";

/** `SOAK_MINUTES=10` soaks for longer. */
const minutes = Number(process.env["SOAK_MINUTES"] ?? 3);

/** The allowed growth of the heap, above the noise of garbage collection. Fallbacks keep the usage of up to 100,000 keys, and grow until then. */
const maxGrowthBytes = 20e6;

it(`mixed traffic of ${minutes} minutes leaks no memory, listeners, timers, keys or requests`, {
  timeout: (minutes + 2) * 60_000,
}, async () => {
  const endMs = performance.now() + minutes * 60_000;
  const report = await soak(({ length }) => length > 2 && performance.now() > endMs);
  const tenth = Math.ceil(report.samples.length / 10);
  console.table(report.samples.filter((_, i) => (i + 1) % tenth === 0));
  expect(leftBehind(report)).toEqual([]);
});

interface SoakReport {
  readonly samples: readonly Sample[];
  /** Keys in Redis after all windows have passed. */
  readonly keysLeft: number;
}

/** The growth of the heap's median from the second third of the samples (warm) to the last third. */
function heapGrowth(samples: readonly Sample[]): number {
  const third = Math.floor(samples.length / 3);
  const medianOf = (some: readonly Sample[]): number =>
    some.map(({ heapBytes }) => heapBytes).sort((a, b) => a - b)[some.length >> 1] as number;
  return medianOf(samples.slice(-third)) - medianOf(samples.slice(-2 * third, -third));
}

/** What a soak has leaked, in words. */
function leftBehind({ samples, keysLeft }: SoakReport): string[] {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined) return ["no round was finished"];
  const grownBytes = heapGrowth(samples);
  return [
    ...(grownBytes < maxGrowthBytes ? [] : [`the heap has grown by ${(grownBytes / 1e6).toFixed(1)} MB`]),
    ...(last.listeners === first.listeners ? [] : [`there were ${first.listeners} listeners, and now are ${last.listeners}`]),
    ...(last.timers === 0 ? [] : [`${last.timers} timers are left`]),
    ...(last.lost === 0 ? [] : [`${last.lost} requests were never answered`]),
    ...(keysLeft === 0 ? [] : [`${keysLeft} keys are left in Redis`]),
  ];
}

/** Runs rounds of mixed traffic in a separate process. In every fifth round Redis hangs for a moment or drops its clients. */
async function soak(enough: (samples: readonly Sample[]) => boolean): Promise<SoakReport> {
  const redis = await startRedis();
  const child = fork(bundled("soak/child.ts"), [`${redis.port}`], { execArgv: ["--expose-gc"] });
  const ended = once(child, "exit");
  const tooEarly = ended.then(([code]): never => {
    throw new Error(`The process of the soak has ended early, with code ${code}.`);
  });
  tooEarly.catch(() => undefined);
  const answer = async (): Promise<unknown> => (await Promise.race([once(child, "message"), tooEarly]))[0];
  try {
    await answer();
    const samples: Sample[] = [];
    while (!enough(samples)) {
      child.send("round");
      const [sample] = await Promise.all([answer(), samples.length % 5 === 4 ? trouble(redis) : undefined]);
      samples.push(sample as Sample);
    }
    child.send("end");
    await ended;
    return { samples, keysLeft: await keysLeft(redis) };
  } finally {
    child.kill();
    await redis.stop();
  }
}

async function trouble(redis: RedisServer): Promise<void> {
  await sleep(100);
  redis.pause();
  await sleep(300);
  redis.resume();
  await redis.command("CLIENT", "KILL", "TYPE", "normal");
}

/** How many keys have not expired in time, besides the announcement of changes, which lasts a day. */
async function keysLeft(redis: RedisServer): Promise<number> {
  const count = async (): Promise<number> => {
    const keys = (await redis.command("KEYS", "*")) as readonly unknown[];
    return keys.filter((key) => !String(key).endsWith(":changes")).length;
  };
  for (let tries = 0; tries < 40; tries++) {
    if ((await count()) === 0) return 0;
    await sleep(100);
  }
  return count();
}
