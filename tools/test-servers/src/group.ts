import type { RedisServer } from "./redis-server.js";

/** Waits for servers that start in parallel. If one fails, the others are stopped. */
export async function startAll(starts: readonly Promise<RedisServer>[]): Promise<RedisServer[]> {
  try {
    return await Promise.all(starts);
  } catch (error) {
    for (const start of await Promise.allSettled(starts)) if (start.status === "fulfilled") await start.value.stop();
    throw error;
  }
}

/** Sets up a group of servers. If that fails, all are stopped. */
export async function ready<Group extends { stop(): Promise<void> }>(
  group: Group,
  prepare: (group: Group) => Promise<void>,
): Promise<Group> {
  try {
    await prepare(group);
    return group;
  } catch (error) {
    await group.stop();
    throw error;
  }
}

/** Whether a replica is in sync with its master. */
export async function follows(replica: RedisServer, master: { readonly port: number }): Promise<boolean> {
  const { master_port: port, master_link_status: link } = await replica.info("replication");
  return port === String(master.port) && link === "up";
}
