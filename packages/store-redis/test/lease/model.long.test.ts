import { type Duration, fixedWindow, type Policy, tokenBucket } from "@floodgate/core";
import { afterAll, describe, expect, it, vi } from "vitest";
import { allRuns } from "../../../../test/runs.js";
import { explore } from "./explore.js";
import type { Fault, Setup } from "./setup.js";

vi.setConfig({ testTimeout: 300_000 });

const calm = { processes: 2, lifeMs: 20, stepMs: 10, endMs: 20, crashes: 0, losses: 0, resets: 0, blocks: 0, closes: 0 };
const aWindow = (limit: number, window: Duration): Policy => fixedWindow({ limit, window });
const window: Setup = { ...calm, policy: aWindow(5, "20ms"), endMs: 20 };
const lasting: Setup = { ...calm, policy: aWindow(5, "1h") };
const bucket: Setup = { ...calm, policy: tokenBucket({ capacity: 5, refill: 1, every: "10ms" }) };

/** How many states there are, at least. Fewer mean that the exploration has stopped to explore. */
const least = 300;
let states = 0;
afterAll(() => console.log(`The leases of all models: ${states} different states.`));

const small: [string, Setup][] = [
  ["across the edge of a window, with a lost or late message", { ...window, losses: 1, processes: 1 }],
  ["in a bucket, with a lost or late message", { ...bucket, losses: 1, processes: 1, endMs: 10 }],
  ["with a lost or late message", { ...lasting, losses: 1, endMs: 10 }],
  ["with a crash", { ...lasting, crashes: 1, endMs: 10 }],
  ["of one process, with a reset", { ...lasting, resets: 1, processes: 1 }],
  ["of one process, with a block", { ...lasting, blocks: 1, processes: 1 }],
  ["with a process that closes", { ...lasting, closes: 1, endMs: 10 }],
  ["of three processes", { ...lasting, policy: aWindow(7, "1h"), processes: 3, endMs: 0 }],
];

/** They have most of all states, and run in `npm run test:long`. */
const large: [string, Setup][] = [
  ["across the edge of a window", window],
  ["beyond the edge of a window, with a lost or late message", { ...window, losses: 1, processes: 1, endMs: 30 }],
  ["in a bucket", bucket],
  ["in a bucket for the life of a lease, with a lost or late message", { ...bucket, losses: 1, processes: 1 }],
  ["for the life of a lease, with a crash", { ...lasting, crashes: 1 }],
  ["for the life of a lease, with a process that closes", { ...lasting, closes: 1 }],
  ["with a reset", { ...lasting, resets: 1, endMs: 10 }],
  ["with a block", { ...lasting, blocks: 1 }],
];

describe("leases keep their bounds in every order of events", () => {
  it.each(allRuns ? [...small, ...large] : small)("%s", (_, setup) => {
    const found = explore(setup);
    states += found.states;
    expect(found).toMatchObject({ trace: undefined, violation: undefined });
    expect(found.states).toBeGreaterThan(least);
  });
});

describe("the exploration finds a planted mistake", () => {
  it.each<[Fault, Setup, string]>([
    ["spend-before-debit", lasting, "Requests were admitted that were not charged."],
    ["life-from-reply", { ...window, processes: 1 }, "Units are stranded."],
    ["record-remains", { ...lasting, losses: 1 }, "More units were given back than were charged."],
    ["no-end-after-loss", { ...lasting, losses: 1, endMs: 10 }, "Units are stranded."],
    ["no-record-of-the-end", { ...lasting, losses: 1, endMs: 10 }, "Units are stranded."],
    ["no-release", lasting, "A request was rejected beside units of its own process."],
    ["no-edge", { ...window, endMs: 30 }, "Requests were admitted that were not charged."],
    ["no-end-at-reset", { ...lasting, resets: 1 }, "A lease was spent after a reset or a block in its own process."],
    ["void-is-spent", { ...lasting, resets: 1 }, "A lease was spent after a reset or a block in its own process."],
  ])("%s", (fault, setup, violation) => {
    const { trace, violation: found } = explore(setup, fault);
    expect(found).toBe(violation);
    expect(trace).toBeDefined();
  });
});
