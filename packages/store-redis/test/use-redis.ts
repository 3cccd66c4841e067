import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";

/** Starts a Redis for the test file, and stops it after all tests. */
export function useRedis(use: (server: RedisServer, redis: Redis) => void): void {
  let server: RedisServer | undefined;
  let redis: Redis | undefined;
  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.port);
    use(server, redis);
  });
  afterAll(async () => {
    redis?.disconnect();
    await server?.stop();
  });
}

/** A client for the stores of another process: the stores of one client are one. It shares the connection. */
export function anotherProcess(redis: Redis): Redis {
  return new Proxy(redis, {
    get: (target, name) => {
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
