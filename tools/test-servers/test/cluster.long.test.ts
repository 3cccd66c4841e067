import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RedisCluster, startCluster } from "../src/index.js";

describe("a Cluster of three masters with a replica each", { timeout: 30_000 }, () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await startCluster();
  });

  afterAll(() => cluster.stop());

  it("serves every slot, a third of them by each master", async () => {
    const masters = await Promise.all([0, 5460, 5461, 10_922, 10_923, 16_383].map((slot) => cluster.masterOf(slot)));
    expect(masters.map((master) => cluster.nodes.indexOf(master))).toEqual([0, 0, 1, 1, 2, 2]);
  });

  it("has an in-sync replica for each master", async () => {
    for (const slot of [0, 8000, 16_000]) {
      const [replica] = await cluster.replicasOf(slot);
      const { master_port: port, master_link_status: link } = (await replica?.info("replication")) ?? {};
      expect([Number(port), link]).toEqual([(await cluster.masterOf(slot)).port, "up"]);
    }
  });

  it("redirects clients to the right node", async () => {
    const slot = Number(await cluster.nodes[0]?.command("CLUSTER", "KEYSLOT", "key"));
    const master = await cluster.masterOf(slot);
    expect(await master.command("SET", "key", "value")).toBe("OK");
    const others = cluster.nodes.filter((node) => node !== master);
    const answers = await Promise.allSettled(others.map((node) => node.command("GET", "key")));
    expect(answers.map((answer) => answer.status === "rejected" && answer.reason.message)).toEqual(
      others.map(() => `MOVED ${slot} ${master.host}:${master.port}`),
    );
  });

  it("keeps its keys when a replica takes over, and when the old master takes over again", async () => {
    const before = await cluster.masterOf(12_539);
    await before.command("SET", "key", "kept");
    const after = await cluster.failover(12_539);
    expect(after).not.toBe(before);
    expect(await after.command("GET", "key")).toBe("kept");
    expect(await cluster.failover(12_539)).toBe(before);
  });

  it("recovers when a master is killed, and takes it back as a replica", async () => {
    const master = await cluster.masterOf(0);
    const [replica] = await cluster.replicasOf(0);
    await master.kill();
    await cluster.healthy();
    expect(await cluster.masterOf(0)).toBe(replica);
    await master.restart();
    await cluster.healthy();
    expect(await cluster.replicasOf(0)).toEqual([master]);
  });
});
