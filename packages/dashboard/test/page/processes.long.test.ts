import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startBrowser, type TestBrowser, totalsOf } from "./browser.js";

// An Express, a Koa and a Hono app, each a process of its own, behind one Redis.

const sent = { Express: 7, Koa: 4, Hono: 9 };
const children: ChildProcess[] = [];
const ports: number[] = [];
let redis: RedisServer;
let browser: TestBrowser;

beforeAll(async () => {
  [redis, browser] = await Promise.all([startRedis(), startBrowser()]);
  for (const framework of Object.keys(sent))
    children.push(fork(join(__dirname, "app.mjs"), [String(redis.port), framework], { execArgv: [] }));
  for (const child of children) ports.push((await once(child, "message"))[0] as number);
}, 60_000);

afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await browser?.close();
  await redis?.stop();
});

it("the page of each process shows what was sent to all of them, and which they are", async () => {
  for (const [i, count] of Object.values(sent).entries()) {
    for (let n = 0; n < count; n++) await (await fetch(`http://127.0.0.1:${ports[i]}/`)).arrayBuffer();
  }
  const patient = { timeout: 20_000 };
  for (const port of ports) {
    const page = await browser.open(port);
    await expect
      .poll(() => totalsOf(page), patient)
      .toEqual({
        Express: { Allowed: 5, Limited: 2, "Units asked": 7, "Units charged": 5 },
        Koa: { Allowed: 4, "Units asked": 4, "Units charged": 4 },
        Hono: { Allowed: 5, Limited: 4, "Units asked": 9, "Units charged": 5 },
      });
    expect(await page.textContent(".scope")).toMatch(/The sum of 3\sprocesses\./);
    if (port !== ports.at(-1)) await page.close();
    else {
      children[0]?.kill("SIGKILL");
      await expect.poll(() => page.textContent(".scope"), patient).toMatch(/The sum of 2\sprocesses\./);
    }
  }
  expect(browser.complaints()).toEqual([]);
}, 90_000);
