import * as crypto from "node:crypto";
import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { runs } from "../../../../test/runs.js";
import { anyCharacter } from "../../../conformance/test/characters.js";
import { type Hashes, hmacSha256, nodeHashes, ownHashes, sha256 } from "../../src/support/hash.js";

/** Any code units, including lone surrogates. */
const units = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 400, size: "max" }).map((codes) => String.fromCharCode(...codes));
const wellFormed = fc.string({ unit: anyCharacter, maxLength: 400, size: "max" });
const surrogates = fc.string({ unit: fc.constantFrom("\ud800", "\udbff", "\udc00", "\udfff", "a", "é"), maxLength: 8 });
const text = fc.oneof(wellFormed, units, surrogates);

const { hash: _hash, ...olderCrypto } = crypto;
const platforms: Record<string, Hashes> = {
  "node:crypto": nodeHashes(crypto),
  "node:crypto without its one-shot hash": nodeHashes(olderCrypto),
  "this process": { sha256, hmacSha256 },
};

describe.each(Object.entries(platforms))("core's own hash and %s", (_, platform) => {
  test("give every string the same digest", () => {
    fc.assert(
      fc.property(text, (text) => platform.sha256(text) === ownHashes.sha256(text)),
      runs(2000),
    );
  });

  test("give every secret and string the same HMAC", () => {
    fc.assert(
      fc.property(text, text, (secret, text) => platform.hmacSha256(secret, text) === ownHashes.hmacSha256(secret, text)),
      runs(1000),
    );
  });
});

describe("core's own hash", () => {
  test("is SHA-256 of the text as UTF-8", () => {
    fc.assert(
      fc.property(wellFormed, (text) => ownHashes.sha256(text) === crypto.createHash("sha256").update(text).digest("hex")),
      runs(2000),
    );
  });

  test("is correct for every length around a block boundary", () => {
    for (let length = 0; length <= 200; length++) {
      const text = "x".repeat(length);
      expect(ownHashes.sha256(text)).toBe(crypto.createHash("sha256").update(text).digest("hex"));
      expect(ownHashes.hmacSha256(text, text)).toBe(crypto.createHmac("sha256", text).update(text).digest("hex"));
    }
  });
});

test.each(Object.entries({ ...platforms, "core itself": ownHashes }))(
  "by %s, strings that differ only in a lone surrogate have different digests",
  (_, { sha256 }) => {
    const texts = ["\ud800", "\ud801", "\udc00", "\ufffd", "\udc00\ud800", "\ud800\udc00"];
    expect(new Set(texts.map(sha256)).size).toBe(texts.length);
  },
);

describe("in a runtime without node:crypto", () => {
  afterEach(() => {
    vi.resetModules();
  });

  test.each([
    [
      "without the module",
      (before: typeof process.getBuiltinModule) => (name: string) => (name === "node:crypto" ? undefined : before(name)),
    ],
    ["without getBuiltinModule", () => undefined],
  ])("%s, core hashes by itself, and its digests are the same", async (_, make) => {
    const before = process.getBuiltinModule;
    vi.resetModules();
    try {
      Object.assign(process, { getBuiltinModule: make(before) });
      const fresh = await import("../../src/support/hash.js");
      const { nodeCrypto } = await import("../../src/support/runtime.js");
      expect(nodeCrypto()).toBeUndefined();
      expect(fresh.sha256("ann")).toBe(sha256("ann"));
      expect(fresh.hmacSha256("secret", "ann")).toBe(hmacSha256("secret", "ann"));
    } finally {
      Object.assign(process, { getBuiltinModule: before });
    }
  });
});
