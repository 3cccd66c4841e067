import type { WebServer } from "@floodgate/test-servers";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { dear, exhaustedClient, numbersOfLines, raw, sizes } from "./attacks.js";
import type { Client } from "./client.js";
import { gateways } from "./gateways.js";
import { longDeadlineMs, Stage } from "./stage.js";

/** Eight times that of the pages, because the attacker, the app and the gateway share the machine with the decision server. */
const floodDeadlineMs = 2000;

const kinds = Object.keys(dear) as (keyof typeof dear)[];
const lines = ["X-Api-Key: a", "None: a", "Connection: x-a", "Host: b", "Cookie: a=b", "a_b: c"];

describe("An exhausted client passes nothing, and ends no process:", async () => {
  for (const gateway of gateways) {
    const version = await gateway.version();
    describe.each([false, true])(`${gateway.name} ${version}, with raised limits: %s,`, (raised) => {
      const stage = new Stage();
      let server: WebServer;
      let client: Client;

      beforeAll(async () => {
        await stage.start();
        server = await stage.gateway(
          gateway,
          (await stage.decisionServer()).port,
          "open",
          raised ? longDeadlineMs : floodDeadlineMs,
          raised,
        );
        client = await exhaustedClient(server.port);
      });
      afterAll(() => stage.stop());
      beforeEach(() => void stage.app.take());

      const nothingPassed = async (): Promise<void> => {
        expect(stage.app.take()).toEqual([]);
        expect(await client.attack([raw("/")])).toEqual({ 429: 1 });
        expect(server.log).not.toMatch(/exited on signal|exit signal|panic|segfault/i);
      };

      it.each(lines)("with any number of header lines: %s", async (line) => {
        await client.attack(
          numbersOfLines.map((count) => raw("/", ...Array.from({ length: count }, () => line))),
          numbersOfLines.length,
          4,
        );
        await nothingPassed();
      });

      it.each(kinds)("with any size: %s", async (kind) => {
        await client.attack(
          sizes.map((bytes) => dear[kind](bytes)),
          sizes.length,
          4,
        );
        await nothingPassed();
      });

      // Raised limits let through what keeps the gateway itself busy.
      if (raised) return;
      it.each([1000, 8000, 15_000, 30_000])("over 64 connections at once, with all kinds of %i bytes", async (bytes) => {
        await client.attack(
          kinds.map((kind) => dear[kind](bytes)),
          1000,
          64,
        );
        await nothingPassed();
      });
    });
  }
});
