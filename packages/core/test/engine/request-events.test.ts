import assert from "node:assert/strict";
import { fixedWindow } from "../../src/index.js";
import type { RequestEvent } from "../../src/rules.js";
import { describe, it, type LimitSetup, self } from "./app.js";

const policy = fixedWindow({ limit: 1, window: "1m" });

describe("a request has one event, with what became of it", () => {
  for (const [result, setup, path, rejected, name] of [
    ["allowed", { policy }, "/", false, "default"],
    ["skipped", { policy, skip: () => true }, "/", false, undefined],
    ["exempt", { policy, exempt: { ips: [self] } }, "/", false, "default"],
    ["uncounted", { rules: [{ name: "posts", match: { path: "/posts" }, policy }] }, "/", false, undefined],
    ["uncounted", { policy, mode: "shadow", key: () => assert.fail("no user") }, "/", false, undefined],
    ["missing-key", { policy, key: "header:x-user", onMissingKey: "reject" }, "/", true, "default"],
    ["ambiguous-path", { policy, ambiguousPath: "reject" }, "/a/../b", true, "default"],
  ] as [string, LimitSetup, string, boolean, string | undefined][]) {
    it(`${result}: ${Object.keys(setup).join()}`, async (web) => {
      const events: RequestEvent[] = [];
      const app = await web.start({ ...setup, onEvent: (event) => void (event.type === "request" && events.push(event)) });
      await app.get(path);
      assert.deepEqual(
        events.map((event) => [event.result, event.rejected, event.name]),
        [[result, rejected, name]],
      );
    });
  }
});
