import { vi } from "vitest";
import { conformsOnRedis } from "./conformance.js";

// An edge runtime, on which each step is a request of its own. Core reads it when it is loaded.
vi.hoisted(() => vi.stubGlobal("EdgeRuntime", "edge-runtime"));

conformsOnRedis("@upstash/redis", undefined, true);
