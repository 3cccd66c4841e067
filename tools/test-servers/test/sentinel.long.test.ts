import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RedisSentinel, startSentinel } from "../src/index.js";

describe("a master, its replica and a sentinel", { timeout: 30_000 }, () => {
  let group: RedisSentinel;

  beforeAll(async () => {
    group = await startSentinel();
  });

  afterAll(() => group.stop());

  it("tell clients where the master is", async () => {
    const master = await group.master();
    expect(master).toBe(group.nodes[0]);
    expect(await group.sentinel.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", group.name)).toEqual([master.host, String(master.port)]);
  });

  it("promote the replica with its keys", async () => {
    await group.nodes[0]?.command("SET", "key", "kept");
    await group.nodes[0]?.command("WAIT", 1, 0);
    const after = await group.failover();
    expect(after).toBe(group.nodes[1]);
    expect(await after.command("GET", "key")).toBe("kept");
    expect((await group.nodes[0]?.info("replication"))?.["master_port"]).toBe(String(after.port));
  });

  it("recover when the master is killed", async () => {
    const before = await group.master();
    await before.kill();
    await group.healthy();
    expect(await group.master()).not.toBe(before);
  });
});
