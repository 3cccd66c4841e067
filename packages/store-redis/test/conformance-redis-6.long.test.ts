import { conformsOnRedis } from "./conformance.js";

conformsOnRedis("redis 6");
