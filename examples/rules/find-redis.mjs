/**
 * The Redis to use: the one at REDIS_URL. Without it, a redis-server that is started for this, if this runs in Floodgate's repository; else the
 * one on this machine.
 */
export async function findRedis() {
  const given = process.env.REDIS_URL;
  if (given !== undefined) return { url: given, isOwn: false, stop: () => undefined };
  const servers = await import("../../tools/test-servers/dist/index.js").catch(() => undefined);
  if (servers === undefined) return { url: "redis://127.0.0.1:6379", isOwn: false, stop: () => undefined };
  const redis = await servers.startRedis();
  return { url: `redis://${redis.host}:${redis.port}`, isOwn: true, stop: () => redis.stop() };
}
