import axe from "axe-core";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { allRuns } from "../../../../test/runs.js";
import { type App, frameworks, fullApp, stackedApp } from "./apps.js";
import { startBrowser, type TestBrowser, totalsOf } from "./browser.js";

/** For `npm run test:long`. */
const long = it.runIf(allRuns);

let browser: TestBrowser;

beforeAll(async () => {
  browser = await startBrowser();
});

afterAll(() => browser?.close());

afterEach(() => {
  expect(browser.complaints()).toEqual([]);
});

describe("the page", () => {
  const apps: Record<string, App> = {};
  const sent = { Express: { count: 12, limit: 10 }, Koa: { count: 9, limit: 5 }, Hono: { count: 7, limit: 7 } };

  beforeAll(async () => {
    for (const [name, { count, limit }] of Object.entries(sent)) {
      apps[name] = await start(name, `${name}'s`, limit);
      const statuses = await apps[name].send(count);
      expect(statuses.filter((status) => status === 200)).toHaveLength(limit);
    }
  });

  afterAll(async () => {
    for (const app of Object.values(apps)) await app.close();
  });

  it.each(Object.keys(sent).slice(0, allRuns ? undefined : 1))(
    "shows what was sent to an app on %s, for all limits of the process",
    async (name) => {
      const page = await browser.open(apps[name]?.port ?? 0);
      await expect
        .poll(() => totalsOf(page))
        .toEqual({
          "Express's": { Allowed: 10, Limited: 2, "Units asked": 12, "Units charged": 10 },
          "Koa's": { Allowed: 5, Limited: 4, "Units asked": 9, "Units charged": 5 },
          "Hono's": { Allowed: 7, "Units asked": 7, "Units charged": 7 },
        });
      await page.close();
    },
  );

  it("says what each rule would answer a request, and charges nothing", async () => {
    const app = untilEnd(await start("Express", "Asked", 1));
    const page = untilEnd(await browser.open(app.port));
    const ask = async () => {
      await page.fill("#request-path", "/");
      await page.fill("#request-ip", "127.0.0.1");
      await page.click("#request [type=submit]");
    };
    const row = '#request tr:has(.name:text-is("Asked"))';
    await ask();
    await page.waitForSelector(`${row} bdi:text-is("passes")`);
    await ask();
    await page.waitForSelector(`${row} td:text-is("0 of 1")`);
    await app.send(1);
    await ask();
    await page.waitForSelector(`${row} bdi:text("rejects, for")`);
    expect(await page.textContent("#request .said")).toMatch(/^GET \/ would be rejected with 429 by .*Asked/);
  });

  it("shows its figures while a proxy holds the stream back", async () => {
    const app = untilEnd(await start("Express", "Held", 1));
    await app.send(1);
    const page = untilEnd(await browser.newPage());
    await page.route("**/data/live", () => undefined);
    await page.goto(`http://localhost:${app.port}/_floodgate`);
    await page.waitForSelector("main > section");
    expect(await page.textContent(".bar .state")).toBe("Connecting…");
  });

  it("says that an answer is cut off or is another page, and shows the figures once they come", async () => {
    const app = untilEnd(await start("Express", "Proxied", 1));
    const page = untilEnd(await browser.newPage());
    await page.route("**/data/**", (route) => route.fulfill({ contentType: "text/html", body: "<h1>Log in</h1>" }));
    await page.goto(`http://localhost:${app.port}/_floodgate`);
    await page.waitForSelector(".notice:has-text('The answer is cut off, or it is not from the dashboard.')");
    await page.unroute("**/data/**");
    await page.waitForSelector("main > section");
    await page.waitForSelector(".notice.bad[hidden]", { state: "attached" });
    for (const text of browser.complaints()) expect(text).toContain("text/html");
  });

  it("says since when the failures of a store are counted", async () => {
    const app = untilEnd(await start("Express", "Failed", 1));
    const page = untilEnd(await browser.newPage());
    await page.route("**/data/live", () => undefined);
    await page.route("**/data/overview", async (route) => {
      const overview = await (await route.fetch()).json();
      const stores = overview.stores.map((store: object) => ({ ...store, errors: [{ code: "DOWN", count: 2 }] }));
      await route.fulfill({ json: { ...overview, stores } });
    });
    await page.goto(`http://localhost:${app.port}/_floodgate`);
    await page.waitForSelector("#stores .bad");
    expect(await page.locator("#stores ul").first().textContent()).toMatch(/2\sfailures: DOWN\s2since .*\d/);
  });

  it("shows the other sections, and goes on, if one cannot be drawn", async () => {
    const app = untilEnd(await start("Express", "Broken", 1));
    const page = untilEnd(await browser.newPage());
    await page.route("**/data/live", () => undefined);
    await page.route("**/data/overview", async (route) => {
      const overview = await (await route.fetch()).json();
      await route.fulfill({ json: { ...overview, stores: [null] } });
    });
    await page.goto(`http://localhost:${app.port}/_floodgate`);
    await page.waitForSelector("#rules");
    await page.waitForSelector("main > .notice:text('This part of the page cannot be shown.')");
    expect(await page.locator("#stores").count()).toBe(0);
    await page.unroute("**/data/live");
    await page.getByLabel("Day").check();
    await page.waitForSelector("#rules header:has-text('last day')");
    for (const text of browser.complaints()) expect(text).toMatch(/TypeError: Cannot read properties of null/);
  });

  long("says when the app is gone, and when it is back", async () => {
    const app = untilEnd(await start("Express", "Gone", 1));
    const page = untilEnd(await browser.open(app.port));
    await app.close();
    await page.waitForSelector(".bar .state:text-is('Not connected, trying again')");
    expect(browser.complaints().filter((text) => !text.includes("ERR_CONNECTION_REFUSED") && !text.includes("ERR_INCOMPLETE"))).toEqual([]);
    const again = untilEnd(await start("Express", "Back", 1, app.port));
    await again.send(1);
    await page.waitForSelector(".bar .state:text-is('Live')");
    await expect.poll(async () => Object.keys(await totalsOf(page))).toContain("Back");
    browser.complaints();
  });

  long("shows what was sent while requests come, and after it was hidden", async () => {
    const app = untilEnd(await start("Express", "Live", 4));
    const page = untilEnd(await browser.open(app.port));
    await app.send(5);
    await expect.poll(() => rowOf(page, "Live")).toEqual(["5", "1 (20\u00a0%)"]);
    expect(await page.textContent("h1")).toMatch(/^[\d,]+\srequests? rejected$/);
    await hide(page, true);
    await page.waitForSelector(".bar .state:text-is('Paused')");
    await app.send(3);
    await hide(page, false);
    await expect.poll(() => rowOf(page, "Live")).toEqual(["8", "4 (50\u00a0%)"]);
  });
});

/** Closes it when the test ends, also one that failed: what stays open is counted by the next try. */
function untilEnd<T extends { close(): Promise<void> }>(opened: T): T {
  onTestFinished(() => opened.close());
  return opened;
}

const start = (framework: string, rule: string, limit: number, port?: number): Promise<App> =>
  (frameworks[framework] as (typeof frameworks)[string])(rule, limit, port);

/** A rule's decisions and rejections of the last minute. */
const rowOf = (page: Page, rule: string): Promise<(string | null)[]> =>
  page.$$eval(`#rules tr:has(.name:text-is("${rule}")) td`, (cells) => cells.slice(-2).map((cell) => cell.textContent));

async function lookUp(page: Page, key: string, rule: string): Promise<void> {
  await page.fill("#lookup-key", key);
  await page.selectOption("#lookup-rule", rule);
  await page.click("#lookup [type=submit]");
}

async function hide(page: Page, hidden: boolean): Promise<void> {
  await page.evaluate((now) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => now });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
}

describe("the page of an app with several rules and middlewares", () => {
  long(
    "says how many requests were rejected as the client counts them, shows a banned key once with its rules, and shows a store that fails closed",
    async () => {
      const app = untilEnd(await stackedApp());
      const page = untilEnd(await browser.open(app.port));
      // What other tests of this process have sent is counted too.
      const before = await wholeOf(page);
      const statuses = [...(await app.send(12, { "x-key": "ann" })), ...(await app.send(3, { "x-key": "bob" }, "/away"))];
      const rejected = statuses.filter((status) => status >= 400).length;
      expect(statuses.filter((status) => status === 503)).toHaveLength(3);
      await expect.poll(async () => (await wholeOf(page)).rejected - before.rejected).toBe(rejected);
      expect((await wholeOf(page)).requests - before.requests).toBe(statuses.length);
      await page.waitForSelector('#rejections tr:has(bdi:text-is("ann")) .tag:text-is("banned")');
      expect(await page.locator('#rejections tr:has(bdi:text-is("ann"))').count()).toBe(1);
      await page.waitForSelector(".detail:has-text('3 were rejected')");
    },
  );
});

/** The requests and the rejections of the last minute, as the first figures say. */
async function wholeOf(page: Page): Promise<{ readonly requests: number; readonly rejected: number }> {
  const figure = page.locator(".answer .figures > div", { hasText: "Rejected" });
  const [rejected = "0", note = ""] = await Promise.all([
    figure.locator(".value").textContent(),
    figure.locator(".note").textContent(),
  ]).then((texts) => texts.map((text) => (text ?? "").replaceAll(",", "")));
  return { rejected: Number(rejected), requests: Number(/ of (\d+)/.exec(note)?.[1] ?? 0) };
}

describe("the page of an app with hostile names and keys", () => {
  const names = { window: `<img src=x onerror="alert('rule')">`, queue: "</script><script>alert('queue')</script>", shadow: "__proto__" };
  const keys = [
    `<img src=x onerror=alert('key')>`,
    "</script><script>alert(1)</script>",
    "javascript:alert(1)",
    "__proto__",
    "constructor",
    `"onmouseover="alert(1)`,
    "x".repeat(10_000),
  ];
  let app: App;
  let page: Page;

  beforeAll(async () => {
    app = await fullApp(names);
    for (const key of keys) await app.send(5, { "x-key": key });
    page = await browser.open(app.port);
    await page
      .locator("#keys tbody tr")
      .nth(keys.length - 1)
      .waitFor();
  });

  afterAll(async () => {
    await page?.close();
    await app?.close();
  });

  it("shows them as text, and makes no element of them", async () => {
    expect(await page.title()).toBe("<b>Shop</b>");
    const shown = await page.$$eval("#keys .key", (cells) => cells.map((cell) => cell.textContent));
    for (const key of keys.slice(0, -1)) expect(shown).toContain(key);
    // What is very long is a hash.
    expect(Math.max(...shown.map((text) => text?.length ?? 0))).toBeLessThan(100);
    expect(await page.$$eval("#rules .folding .name", (cells) => cells.map((cell) => cell.textContent))).toEqual(
      expect.arrayContaining(Object.values(names)),
    );
    expect(await page.$$eval("img, script:not([nonce]), b, [onerror], [onmouseover]", (found) => found.length)).toBe(0);
  });

  it("counts them like any other", async () => {
    // Results are counted when their second has ended.
    await expect
      .poll(async () => (await totalsOf(page))[names.window])
      .toMatchObject({ Allowed: 3 * keys.length, Limited: 2 * keys.length });
    const totals = await totalsOf(page);
    expect(Object.entries(totals)).toContainEqual([
      names.shadow,
      expect.objectContaining({ Allowed: keys.length, Shadow: 4 * keys.length }),
    ]);
    expect((await rowOf(page, names.shadow)).at(-1)).toBe(`${4 * keys.length} (80\u00a0%) would be`);
  });

  it("says what an interval of a chart had while the pointer is over it, and marks it in both charts", async () => {
    await app.send(5, { "x-key": "charted" });
    const when = page.locator("#traffic header p");
    await page.locator("#traffic .chart").first().hover();
    await expect.poll(() => when.textContent()).toMatch(/\d\d:\d\d:\d\d$/);
    expect(await page.locator("#traffic .cursor:not([hidden])").count()).toBe(2);
    // Also one second between others without a request.
    await expect.poll(() => page.locator("#traffic .chart").nth(1).locator("path").last().getAttribute("d")).toMatch(/^M[\d.]+ [\d.]+H/);
    await page.locator("h1").hover();
    await expect.poll(() => when.textContent()).toBe("all rules, last minute");
    expect(await page.locator("#traffic .cursor:not([hidden])").count()).toBe(0);
  });

  it("acts on the key that was typed, once that is confirmed", async () => {
    const [first = "", second = ""] = keys;
    const entry = page.locator(".rule-state").first();
    const confirm = (answer: string) => page.click(`dialog button:text-is("${answer}")`);
    await lookUp(page, first, names.window);
    await entry.getByText("3 of 3 units count").waitFor();
    await lookUp(page, second, names.window);
    await entry.getByText("The next request would be rejected").waitFor();

    await entry.getByRole("button", { name: "Reset" }).click();
    expect(await page.textContent("dialog #confirm-text")).toContain(second);
    await page.keyboard.press("Escape");
    await entry.getByText("3 of 3 units count").waitFor();
    await entry.getByRole("button", { name: "Reset" }).click();
    await confirm("Reset");
    await entry.getByText("Nothing is remembered").waitFor();
    expect(await page.textContent(".said")).toBe(`${second} under ${names.window}: Reset.`);
    expect(await app.send(1, { "x-key": first })).toEqual([429]);
    expect(await app.send(1, { "x-key": second })).toEqual([200]);

    await entry.getByRole("button", { name: "Block" }).click();
    // By the clock of the store, which stands still at a whole hour.
    expect(await page.textContent("dialog #confirm-text")).toMatch(/ until (?:.* )?\d\d:00:00\.$/);
    await confirm("Block");
    await entry.getByText("Blocked by hand").waitFor();
    expect(await app.send(1, { "x-key": second })).toEqual([429]);
    await entry.getByRole("button", { name: "Unblock" }).click();
    await confirm("Unblock");
    await entry.getByText("The next request would pass").waitFor();
    expect(await app.send(1, { "x-key": second })).toEqual([200]);
  });

  long.each(["light", "dark"] as const)("has no serious fault for a screen reader or weak eyes in %s", async (colorScheme) => {
    await page.emulateMedia({ colorScheme });
    await page.$$eval("details", (all) => {
      for (const details of all) details.open = true;
    });
    if (colorScheme === "light") await page.evaluate(axe.source);
    const faults = await page.evaluate(async (all) => {
      const ofPage = (globalThis as unknown as { axe: typeof axe }).axe;
      // In the dark only the colours differ.
      const { violations } = await ofPage.run(all ? {} : { runOnly: ["color-contrast"] });
      return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map(({ html }) => html).join(" ")}`);
    }, colorScheme === "light");
    expect(faults).toEqual([]);
  });

  long("fits a phone without scrolling sideways", async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await page.fill("#request-path", "/");
    await page.click("#request [type=submit]");
    const words = await page.locator("#request td").first().boundingBox();
    expect(words?.width).toBeGreaterThan(250);
    const tooWide = await page.$$eval("main *", (all) =>
      all
        .filter((part) => part.getBoundingClientRect().right > 360 && part.closest(".scroll, .hidden-text, svg") === null)
        .map((part) => part.outerHTML.slice(0, 120)),
    );
    expect(tooWide).toEqual([]);
    const firstLines = await page.$$eval("#keys tbody tr", (rows) =>
      rows.map((row) => [".key bdi", ".who bdi"].map((part) => row.querySelector(part)?.getClientRects()[0]?.top ?? 0)),
    );
    for (const [key = 0, rule = 0] of firstLines) expect(Math.abs(key - rule)).toBeLessThan(10);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    await page.setViewportSize({ width: 1200, height: 900 });
  });

  long("leads the keyboard to every control, in order", async () => {
    await page.focus(".skip");
    const controls = await page.$$eval("a, button, select, summary, input, textarea, [tabindex='0']", (all) =>
      all
        .filter(
          (control) => control.checkVisibility() && !(control instanceof HTMLInputElement && control.type === "radio" && !control.checked),
        )
        .map((control) => control.outerHTML.slice(0, 120)),
    );
    const reached: string[] = [];
    for (let i = 0; i < controls.length; i++) {
      reached.push(await page.evaluate(() => document.activeElement?.outerHTML.slice(0, 120) ?? ""));
      await page.keyboard.press("Tab");
    }
    expect(reached).toEqual(controls);
  });
});
