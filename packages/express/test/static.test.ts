import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fixedWindow } from "@floodgate/core";
import express5, { type Express } from "express";
import express4 from "express4";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rateLimit } from "../src/index.js";
import { listening } from "./express-app.js";

let root = "";

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "floodgate-static-"));
  mkdirSync(join(root, "downloads"));
  writeFileSync(join(root, "downloads", "big.zip"), "big");
});

afterAll(() => rmSync(root, { recursive: true }));

/** Spellings of the file's path: each is served or rejected. */
const spellings = [
  ...["/downloads/big.zip", "/DOWNLOADS/big.zip", "//downloads//big.zip", "/downloads/big%2Ezip", "/%64ownloads/big.zip"],
  ...["/downloads%2Fbig.zip", "/%2Fdownloads%2fbig.zip", "/downloads%5Cbig.zip", "/downloads\\big.zip", "/downloads%252Fbig.zip"],
  ...["/./downloads/big.zip", "/%2e/downloads/big.zip", "/downloads/./big.zip", "/downloads/%2E%2Fbig.zip"],
  ...["/x/../downloads/big.zip", "/x/%2e%2e/downloads/big.zip", "/x%2F..%2Fdownloads/big.zip", "/x//../downloads/big.zip"],
  ...["/../downloads/big.zip", "/downloads/x/../big.zip", "/downloads/../downloads/big.zip", "/%zz/../downloads/big.zip"],
  ...["/downloads/big.zip%00", "/downloads/%c0%ae%c0%ae/downloads/big.zip", "http://elsewhere.example/x/../downloads/big.zip"],
];

describe.each<[string, { (): Express; static(root: string): ReturnType<typeof express5.static> }]>([
  ["Express 5", express5],
  ["Express 4", express4 as never],
])("express.static of %s", (_, express) => {
  it("limits a file under every spelling of its path", async () => {
    const rules = [{ name: "downloads", policy: fixedWindow({ limit: 1, window: "365d" }), match: { path: "/downloads/*" } }];
    const limit = rateLimit({ rules, key: "global" });
    const server = await listening(express().use(limit, express.static(root)));
    const { port } = server.address() as AddressInfo;
    const status = async (path: string): Promise<number> => {
      const [response] = (await once(get({ host: "127.0.0.1", port, path, agent: false }), "response")) as [IncomingMessage];
      response.resume();
      return response.statusCode ?? 0;
    };
    try {
      let served = 0;
      for (const spelling of spellings) {
        limit.limiter.reset("global");
        const statuses = [await status(spelling), await status(spelling)];
        if (statuses[0] !== 200) continue;
        served++;
        expect(statuses, spelling).toEqual([200, 429]);
      }
      expect(served).toBeGreaterThanOrEqual(10);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
