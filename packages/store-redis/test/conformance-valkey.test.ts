import { valkeyServer } from "@floodgate/test-servers";
import { describe, expect, it } from "vitest";
import { conformsOnRedis } from "./conformance.js";

describe("Valkey", async () => {
  const valkey = await valkeyServer();

  it("is there at least in CI; where it is left out elsewhere, a warning says why", () => {
    expect(valkey !== undefined || process.env["CI"] === undefined).toBe(true);
  });

  if (valkey !== undefined) conformsOnRedis("ioredis 6", valkey);
});
