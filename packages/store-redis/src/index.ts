export type { AnyRedis } from "./clients/index.js";
export { parseStoredKey, type StoredKey, storedKey } from "./keys.js";
export { type RedisStore, type RedisStoreOptions, redisStore } from "./redis-store.js";
export { parseRedisUrl, type RedisAddress } from "./redis-url.js";
