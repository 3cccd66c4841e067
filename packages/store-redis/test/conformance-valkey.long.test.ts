import { valkeyServer } from "@floodgate/test-servers";
import { describe, expect, it } from "vitest";
import { conformsOnRedis } from "./conformance.js";

describe("Valkey", async () => {
  const valkey = valkeyServer();

  it("is installed in CI; elsewhere a warning says why it is left out", () => {
    expect(valkey !== undefined || process.env["CI"] === undefined).toBe(true);
  });

  if (valkey !== undefined) conformsOnRedis("ioredis 6", valkey);
});
