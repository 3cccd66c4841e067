import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, fixedWindow, type Limiter, leakyBucket } from "@floodgate/core";
import { redisStore } from "@floodgate/store-redis";
import { appOf, close, type Framework, listen } from "../apps.js";
import { type Client, connect } from "../faults/clients.js";
import { Browser } from "../http.js";

/** Longer than the test waits for a process to end. */
const longMs = 600_000;

function limiterOf(client: Client, timeoutMs: number): Limiter<"async"> {
  return createLimiter({ name: "api", policy: fixedWindow({ limit: 5, window: "1m" }), store: redisStore(client.redis), timeoutMs });
}

async function ofEach(use: (framework: Framework) => Promise<void>): Promise<void> {
  await Promise.all((["Express", "Koa", "Hono"] as const).map(use));
}

/** Two requests to an app that serves the first and holds the second. */
async function held(framework: Framework) {
  const app = appOf[framework]({ policy: leakyBucket({ capacity: 5, leak: 1, every: "10m" }) });
  const port = await listen(app.server);
  const browser = new Browser();
  await browser.get(port, "ann");
  const second = browser.get(port, "ann");
  await sleep(100);
  return { app, second, browser };
}

/** What a process does before it must end by itself. Each case gets the port of a Redis that does not answer. */
export const cases: Readonly<Record<string, (port: number) => Promise<void>>> = {
  async "has had decisions made without Redis"(port) {
    for (const client of connect(port)) {
      const limiter = limiterOf(client, 50);
      for (let i = 0; i < 10; i++) await limiter.consume("ann");
      await client.close();
    }
  },
  async "waits for decisions when it closes its clients"(port) {
    for (const client of connect(port)) {
      limiterOf(client, longMs).consume("ann");
      await sleep(100);
      await client.close();
    }
  },
  async "lets go the requests that it holds, and closes its servers"() {
    await ofEach(async (framework) => {
      const { app, second, browser } = await held(framework);
      app.release();
      await second;
      browser.close();
      close(app.server);
    });
  },
  async "closes its servers while they hold requests"() {
    await ofEach(async (framework) => {
      const { app, browser } = await held(framework);
      close(app.server);
      browser.close();
    });
  },
};
