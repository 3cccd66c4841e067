import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { PolicyOptions } from "@floodgate/core";
import { describe, expect, it, vi } from "vitest";
import { allRuns } from "../../../test/runs.js";

vi.setConfig({ testTimeout: 60_000 });

const workers = allRuns ? 8 : 4;
const year = "365d";
/** Policies that admit a burst of 5000, and nothing more for minutes. */
const limits: readonly PolicyOptions[] = [
  { algorithm: "fixed-window", limit: 5000, window: year },
  { algorithm: "sliding-window-counter", limit: 5000, window: year },
  { algorithm: "sliding-window-log", limit: 5000, window: year },
  { algorithm: "token-bucket", capacity: 5000, refill: 1, every: year },
  { algorithm: "token-bucket", capacity: 5000, refill: 1, every: year, style: "interval" },
  { algorithm: "gcra", limit: 1, window: year, burst: 5000 },
  { algorithm: "leaky-bucket", capacity: 5000, leak: 1, every: "5m" },
];

/** The admitted requests of each limit, over all workers. */
async function race(options: object): Promise<number[]> {
  const env = { ...process.env, RACE: JSON.stringify({ workers, requests: 2000, ...options }) };
  const { stdout } = await promisify(execFile)(process.execPath, [join(__dirname, "race-app.mjs")], { env });
  return JSON.parse(stdout);
}

describe(`${workers} workers of node:cluster with 2000 requests each on one key`, () => {
  it("together admit exactly the limit of each algorithm", async () => {
    const some = allRuns ? limits : limits.slice(0, 3);
    expect(await race({ limits: some })).toEqual(some.map(() => 5000));
  });

  it("do so with the serialization `advanced` too", async () => {
    expect(await race({ limits: limits.slice(0, 1), advanced: true })).toEqual([5000]);
  });
});
