import type { Decision } from "@floodgate/core";
import { asCharge, type Limit } from "@floodgate/core/store";
import { describe, expect, it, vi } from "vitest";
import { askedAfterMs, expectCached, listening, maxAgeMs, Process, useCluster, useProcesses, world } from "./changes-processes.js";
import { limitOf, patienceMs, yearly } from "./patient-store.js";
import { tenAnHour } from "./policies.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

useProcesses();
useCluster();

/** A bucket flows faster once a larger plan has charged it, so its rejections are asked for each second. */
const lasting = tenAnHour.filter(({ algorithm }) => algorithm.includes("window"));

interface Change {
  /** How the key gets rejected. Default: its units are used up. */
  readonly deny?: (other: Process, limit: Limit, key: string) => Promise<unknown>;
  readonly free: (other: Process, limit: Limit, key: string, charge: Decision) => Promise<unknown>;
}

const hourMs = 3_600_000;
const changes: Record<string, Change> = {
  reset: { free: ({ store }, limit, key) => store.reset(limit, key, patienceMs) },
  refund: { free: ({ store }, limit, key, charge) => store.settle(limit, key, asCharge(charge), 0, patienceMs) },
  "settlement to less": { free: ({ store }, limit, key, charge) => store.settle(limit, key, asCharge(charge), 7, patienceMs) },
  "settlement by a receipt": {
    free: ({ store }, limit, key, charge) =>
      store.settle(limit, key, { ...asCharge(charge), receipt: { id: "r", untilMs: world.nowMs + hourMs } }, 7, patienceMs),
  },
  unblock: {
    deny: ({ store }, { name }, key) => store.block(name, key, hourMs, "block", patienceMs),
    free: ({ store }, { name }, key) => store.unblock(name, key, patienceMs),
  },
  "shorter block": {
    deny: ({ store }, { name }, key) => store.block(name, key, hourMs, "block", patienceMs),
    free: ({ store }, { name }, key) => store.block(name, key, 1, "block", patienceMs),
  },
  "reset, which lifts a ban,": {
    deny: ({ store }, { name }, key) => store.block(name, key, hourMs, "ban", patienceMs),
    free: ({ store }, limit, key) => store.reset(limit, key, patienceMs),
  },
};

describe.each([
  ["a server", false],
  ["a Cluster", true],
])("on %s, a rejection is repeated without Redis", (_, onCluster) => {
  describe.each(Object.entries(changes))("until another process's %s", (name, { deny, free }) => {
    it.each(lasting)("which is noticed within maxAgeMs: $stateKind", async (policy) => {
      const [here, there] = [await listening(onCluster), new Process(onCluster)];
      const limit = limitOf(policy);
      const charge = (await there.consume(limit, "k", deny === undefined ? 10 : 1)).decision;
      await deny?.(there, limit, "k");
      // Reads of what was announced by `deny`, and again once it is too old to matter.
      for (let i = 0; i < 2; i++) {
        await here.consume(limit, "other", 11);
        world.nowMs += 1200;
      }
      expect(await here.consume(limit, "k")).toMatchObject({ isCached: false, decision: { allowed: false } });
      await expectCached(here, limit, "k", 5000);
      await free(there, limit, "k", charge);
      await there.answered();
      const { ms, decision } = await askedAfterMs(here, limit, "k");
      expect(ms).toBeLessThanOrEqual(maxAgeMs + 100);
      expect(decision.allowed, name).toBe(true);
    });
  });

  it("until another process gives back leased units", async () => {
    const [here, there] = [await listening(onCluster), new Process(onCluster, { lease: { lifeMs: 10_000 } })];
    const limit = limitOf(yearly(1000));
    for (let i = 0; i < 30; i++) await there.consume(limit, "k");
    // Earlier leases have ended, and that is no news any more.
    const { remaining } = (await here.consume(limit, "k")).decision;
    await here.consume(limit, "k", remaining + 1);
    world.nowMs += 1200;
    await here.consume(limit, "k", remaining);
    expect(await here.consume(limit, "k")).toMatchObject({ isCached: false, decision: { allowed: false } });
    await expectCached(here, limit, "k", 3000);
    await there.store.releaseLeases();
    const { ms, decision } = await askedAfterMs(here, limit, "k");
    expect(ms).toBeLessThanOrEqual(maxAgeMs + 100);
    expect(decision.allowed).toBe(true);
  });

  it("until Redis loses its data", async () => {
    const here = await listening(onCluster);
    const limit = limitOf(yearly(1));
    for (let i = 0; i < 2; i++) await here.consume(limit, "k");
    await expectCached(here, limit, "k", 3000);
    for (const node of onCluster ? world.cluster.nodes.slice(0, 3) : [world.server]) await node.command("FLUSHALL");
    const { ms, decision } = await askedAfterMs(here, limit, "k");
    expect(ms).toBeLessThanOrEqual(maxAgeMs + 100);
    expect(decision.allowed).toBe(true);
  });

  it("for a minute at most, and then asked for again", async () => {
    const here = await listening(onCluster);
    const limit = limitOf(yearly(1));
    for (let i = 0; i < 2; i++) await here.consume(limit, "k");
    await expectCached(here, limit, "k", 60_000);
    world.nowMs += 1;
    expect(await here.consume(limit, "k")).toMatchObject({ isCached: false, decision: { allowed: false } });
  });
});

describe("a rejection is repeated without Redis until another process's reset", () => {
  const noticed = async (reset: (there: Process, limit: Limit) => Promise<unknown>): Promise<void> => {
    const [here, there] = [await listening(), new Process()];
    const limit = limitOf(yearly(1));
    for (let i = 0; i < 2; i++) await here.consume(limit, "k");
    await expectCached(here, limit, "k", 3000);
    await reset(there, limit);
    const { ms, decision } = await askedAfterMs(here, limit, "k");
    expect(ms).toBeLessThanOrEqual(maxAgeMs + 100);
    expect(decision.allowed).toBe(true);
  };

  it("on a server that is full, and takes no other writes", async () => {
    await noticed(async (there, limit) => {
      await world.server.command("CONFIG", "SET", "maxmemory", "1");
      try {
        await there.store.reset(limit, "k", patienceMs);
        await there.answered();
      } finally {
        await world.server.command("CONFIG", "SET", "maxmemory", "0");
      }
    });
  });

  it("whose announcement failed and is repeated, although the process changes nothing else", async () => {
    await noticed(async (there, limit) => {
      const evaluate = there.client.eval;
      there.client.eval = (async () => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        there.client.eval = evaluate;
        throw new Error("the server of the announcement is down");
      }) as never;
      await there.store.reset(limit, "k", patienceMs);
      await vi.waitFor(() => expect(there.sent).toBe(1), { timeout: 20_000 });
      await there.answered();
    });
  });
});

it("A refund across the slots of a Cluster is announced", async () => {
  const [here, there] = [await listening(true), new Process(true)];
  const [limit, wide] = [limitOf(yearly(1)), limitOf(yearly(10))];
  for (const key of ["a", "a", "b"]) await here.consume(limit, key);
  await expectCached(here, limit, "a", 3000);
  const checks = ["a", "b", "c", "d"].map((key) => ({ limit: key === "b" ? limit : wide, key, cost: 1 }));
  expect((await there.store.consumeAll(checks, patienceMs)).map(({ allowed }) => allowed)).toEqual([true, false, true, true]);
  expect((await askedAfterMs(here, limit, "a")).ms).toBeLessThanOrEqual(maxAgeMs + 100);
});
