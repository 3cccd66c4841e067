import { conformsOnRedis } from "./conformance.js";

conformsOnRedis("ioredis 5");
