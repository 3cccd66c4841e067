import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Decision, fixedWindow, type OnStoreError } from "@floodgate/core";
import { isRejection, type RequestResult } from "@floodgate/core/rules";
import type { Limit, Store } from "@floodgate/core/store";
import { rateLimit } from "@floodgate/express";
import { memoryStore } from "@floodgate/store-memory";
import express from "express";
import { afterEach, describe, expect, it } from "vitest";
import { startExporters } from "./exporters.js";

// The metric of whole requests against what the client itself has seen: rules, middlewares, modes, and the store away.

const clock = (): number => Date.UTC(2026, 0, 1);
const undo: (() => unknown)[] = [];

afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

/** A store that fails while `away`. */
function storeThatLeaves(state: { away: boolean }): Store<"sync"> {
  const store = memoryStore({ clock });
  const unless = <T>(ask: () => T): T => {
    if (state.away) throw new Error("away");
    return ask();
  };
  return {
    ...store,
    mode: "sync",
    consume: (limit: Limit, key: string, cost: number): Decision => unless(() => store.consume(limit, key, cost)),
    consumeAll: (checks) => unless(() => store.consumeAll(checks)),
    peek: (limit, key) => store.peek(limit, key),
    settle: (...args) => store.settle(...args),
    reset: (limit, key) => store.reset(limit, key),
    block: (...args) => store.block(...args),
    unblock: (...args) => store.unblock(...args),
    keyState: (limit, key) => store.keyState(limit, key),
  };
}

const per = (limit: number) => fixedWindow({ limit, window: "1m" });
const key = "header:x-client";
const rule = (name: string, limit: number) => ({ name, key, policy: per(limit) }) as const;

/** The middlewares of an app, each a list of rules. */
const apps = {
  "one rule": [[rule("one", 6)]],
  "three rules in one middleware": [[rule("wide", 9), rule("narrow", 5), { ...rule("trial", 2), mode: "shadow" as const }]],
  "three middlewares": [[rule("first", 8)], [rule("second", 6), rule("third", 7)], [rule("fourth", 3)]],
} as const;

/** What clients see, by `onStoreError`, of ten requests while the store is away. */
const modes: readonly [string, () => OnStoreError][] = [
  ["allow", () => "allow"],
  ["deny", () => "deny"],
  ["fallback", () => memoryStore({ clock })],
];

describe.each(Object.keys(apps) as (keyof typeof apps)[])("%s", (name) => {
  it.each(modes)("request outcomes equal what the client counts, with the store and without: %s", async (mode, onStoreError) => {
    const state = { away: false };
    const exporters = startExporters();
    undo.push(() => exporters.stop());
    const app = express();
    const store = storeThatLeaves(state);
    for (const rules of apps[name]) {
      const limit = rateLimit({
        rules: [...rules],
        store,
        onStoreError: onStoreError(),
        skip: (req) => req.path === "/health",
        onEvent: () => undefined,
      });
      undo.push(() => limit.close());
      app.use(limit);
    }
    app.use((_req, res) => void res.end("ok"));
    const server: Server = app.listen(0, "127.0.0.1");
    await once(server, "listening");
    undo.push(() => server.close());
    const port = (server.address() as AddressInfo).port;

    const seen: Record<number, number> = {};
    const send = async (count: number, path = "/", client = "ann"): Promise<void> => {
      for (let i = 0; i < count; i++) {
        const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { "x-client": client, connection: "close" } });
        await response.text();
        seen[response.status] = (seen[response.status] ?? 0) + 1;
      }
    };
    await send(12);
    // What is scraped in between is never counted twice.
    await exporters.prometheus();
    await send(2, "/health");
    state.away = true;
    await send(10, "/", "bob");
    state.away = false;

    const { outcomes = {} } = await exporters.prometheus();
    expect(await exporters.openTelemetry()).toMatchObject({ outcomes });
    const byResult: Partial<Record<RequestResult, number>> = {};
    for (const [series, count] of Object.entries(outcomes)) {
      const result = series.split(" ").at(-1) as RequestResult;
      byResult[result] = (byResult[result] ?? 0) + (count as number);
    }
    const sum = (of: (result: RequestResult) => boolean): number =>
      Object.entries(byResult).reduce((all, [result, count]) => all + (of(result as RequestResult) ? count : 0), 0);
    expect(sum((result) => isRejection(result))).toBe((seen[429] ?? 0) + (seen[503] ?? 0));
    expect(sum((result) => !isRejection(result))).toBe(seen[200]);
    expect(byResult["failed-closed"] ?? 0).toBe(seen[503] ?? 0);
    expect(byResult.skipped).toBe(2);
    const away = { allow: byResult["failed-open"], deny: byResult["failed-closed"] };
    const byFallback = (byResult["fallback-allowed"] ?? 0) + (byResult["fallback-limited"] ?? 0);
    expect(mode === "fallback" ? byFallback : away[mode as "allow" | "deny"]).toBe(10);
  });
});
