import { conformsOnRedis } from "./conformance.js";

conformsOnRedis("@upstash/redis");
