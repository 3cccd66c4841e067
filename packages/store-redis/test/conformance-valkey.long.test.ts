import { execFileSync } from "node:child_process";
import { valkeyServer } from "@floodgate/test-servers";
import { describe, expect, it } from "vitest";
import { conformsOnRedis } from "./conformance.js";

/** Debian has Valkey since 13. */
function hasPackage(): boolean {
  return /Candidate: \d/.test(execFileSync("apt-cache", ["policy", "valkey-tools"], { encoding: "utf8" }));
}

describe("Valkey", async () => {
  const valkey = valkeyServer();

  it("is installed in CI, if its Debian has a package; elsewhere a warning says why it is left out", () => {
    expect(valkey !== undefined || process.env["CI"] === undefined || !hasPackage()).toBe(true);
  });

  if (valkey !== undefined) conformsOnRedis("ioredis 6", valkey);
});
