import { startRedis } from "@floodgate/test-servers";
import { expect, it, vi } from "vitest";
import { type App, exchange, times } from "./exchange.js";
import { heldMs, holdClock, pageTest } from "./harness.js";
import { load } from "./page.js";

holdClock();

const login = (user: string, password: string) => ({ method: "POST", path: "/login", json: { user, password } });

const page = pageTest("express-rate-limit", "express-rate-limit", [
  { heading: "One limit", requests: times(5) },
  {
    heading: "A login",
    requests: [login("ann", "?"), login("ann", "secret"), login("ann", "?"), login("ann", "?"), login("bob", "?")],
    statuses: [401, 200, 401, 429, 401],
  },
  {
    heading: "A limit for each plan",
    requests: [
      ...times(3, { headers: { "x-user": "ann" } }),
      ...times(5, { headers: { "x-user": "bob", "x-plan": "pro" } }),
      { path: "/health", headers: { "x-user": "ann" } },
    ],
    statuses: [200, 200, 503, 200, 200, 200, 200, 503, 404],
  },
  { heading: "Several processes", requests: times(5), statuses: [200, 200, 200, 429, 429], hidesReplies: true, redis: startRedis },
  { heading: "Slow down", requests: times(2), statuses: [200, 200], hidesReplies: true, isByHand: true },
]);

it.each(["before", "after"] as const)("Slow down: the code %s holds each request as long as the page says", async (side) => {
  const { app } = await load<{ app: App }>(page.code("Slow down", side).text);
  const timers = vi.spyOn(globalThis, "setTimeout");
  await exchange(app, times(6));
  // Those of `fetch` are longer.
  expect(timers.mock.calls.flatMap(([, ms = 0]) => (ms > 0 && ms <= 50 ? ms : []))).toEqual([20, 40, 50, 50]);
  timers.mockRestore();
});

it("the table of windows is right", async () => {
  const apps = {
    theirs: 'import { rateLimit } from "express-rate-limit"; const limit = rateLimit({ windowMs: 60_000, limit: 4 });',
    ours: 'import { rateLimit } from "@floodgate/express"; const limit = rateLimit({ window: "1m", limit: 4 });',
    fixed:
      'import { fixedWindow, rateLimit } from "@floodgate/express"; const limit = rateLimit({ policy: fixedWindow({ limit: 4, window: "1m" }) });',
  };
  const startMs = heldMs - 10_000;
  for (const [time, ...passed] of page.text.matchAll(/^ {2}\| 10:(\d\d):(\d\d) +\| (\d) +\| (\d) +\| (\d) /gm)) {
    const [minutes, seconds, ...counts] = passed.map(Number);
    for (const [i, code] of Object.values(apps).entries()) {
      vi.setSystemTime(startMs);
      const { app } = await load<{ app: App }>(`import express from "express"; ${code}
        export const app = express(); app.use(limit); app.get("/", (req, res) => res.end());`);
      await exchange(app, times(4));
      vi.setSystemTime(startMs + (Number(minutes) * 60 + Number(seconds)) * 1000);
      const replies = await exchange(app, times(4));
      expect(replies.filter(({ status }) => status === 200).length, `${time} ${Object.keys(apps)[i]}`).toBe(counts[i]);
    }
  }
});
