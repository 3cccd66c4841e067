export type { AnyRedis } from "./clients/index.js";
export { type RedisStoreOptions, redisStore } from "./redis-store.js";
