import { startRedis } from "@floodgate/test-servers";
import { Redis } from "ioredis";

/** Passes on a redis-server of its own and a client of it, and stops both. */
export async function withRedis(use) {
  const server = await startRedis();
  const redis = new Redis(server.port);
  try {
    return await use(server, redis);
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

/** What a redis-server has used so far: its CPU time, and the time and number of one command. */
export async function usageOf(server, command = "evalsha") {
  const [cpu, stats] = [await server.info("cpu"), await server.info("commandstats")];
  const stat = (name) => Number(new RegExp(`\\b${name}=(\\d+)`).exec(stats[`cmdstat_${command}`] ?? "")?.[1] ?? 0);
  return {
    cpuUs: (Number(cpu.used_cpu_user) + Number(cpu.used_cpu_sys)) * 1e6,
    commandUs: stat("usec"),
    commands: stat("calls"),
  };
}
