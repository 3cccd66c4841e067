import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundlePage, pages } from "@floodgate/pages";
import axe from "axe-core";
import fc from "fast-check";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { hashOf, initialSettings, playedOf, settingsOf } from "../../../packages/simulator/src/page/algorithms/model/settings.js";
import { startBrowser, type TestBrowser } from "../../../packages/simulator/test/page/browser.js";
import { temporaryFolder } from "../../../test/files.js";
import { expected, playedIn, shownIn } from "./verdicts.js";

const file = pages.committed[0]?.file as string;
const lanes = [
  "Fixed window",
  "Sliding window log",
  "Sliding window counter",
  "Sliding window counter, strict",
  "Token bucket, smooth",
  "Token bucket, interval",
  "GCRA",
  "Leaky bucket queue",
];

const folder = temporaryFolder("embedded");
let browser: TestBrowser;

beforeAll(async () => {
  browser = await startBrowser();
});

afterAll(() => browser?.close());

afterEach(() => {
  expect(browser.complaints()).toEqual([]);
});

/** What each lane shows of a count, by the name of the lane. */
async function counted(page: Page, name: "allowed" | "limited" | "delayed" | "most"): Promise<Record<string, number>> {
  const shown = await shownIn(page);
  return Object.fromEntries(shown.map((lane, i) => [lanes[i] as string, lane[name]]));
}

const choose = (page: Page, scenario: string): Promise<void> => page.click(`.choice label:has(:text-is("${scenario}"))`);

describe("verdicts", () => {
  const settings = fc.record({
    limit: fc.integer({ min: 1, max: 150 }),
    seconds: fc.constantFrom(1, 7, 10, 60, 3600),
    seed: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    sent: fc.array(fc.integer({ min: 0, max: 3000 }), { maxLength: 40 }),
  });

  it.each(fc.sample(settings, { seed: 20_261_122, numRuns: 4 }))(
    "are those of a limiter with a memory store, for random requests, at any moment: $limit in $seconds s",
    async ({ limit, seconds, seed, sent }) => {
      const own = sent.sort((a, b) => a - b).map((ms) => ms * seconds);
      const chosen = { ...initialSettings, scenario: "random", limit, windowMs: seconds * 1000, seed, sent: own } as const;
      const page = await browser.open(`${file}${hashOf(chosen)}`);
      const played = await playedIn(page);
      expect(played).toHaveLength(201);
      const { policies, times, scale } = playedOf(chosen, undefined, undefined);
      for (const [i, policy] of Object.values(policies).entries()) {
        const moments = played.map(({ atMs }) => scale.startMs + atMs);
        expect(played.map((step) => step.lanes[i])).toEqual(expected(policy, times, scale.windowMs, moments));
      }
      await page.close();
    },
  );

  it("the edge of a window lets twice the limit through a fixed window, and through no log", async () => {
    const page = await browser.open(`${file}#play=edge&limit=100&window=1m`);
    expect(await counted(page, "most")).toMatchObject({
      "Fixed window": 200,
      "Sliding window log": 100,
      "Leaky bucket queue": 100,
    });
    expect(await page.textContent(".lane:first-child .most")).toBe("200 most within 1m");
    expect(
      await page.$$eval(".most.over", (all) => all.map((item) => item.closest(".lane")?.querySelector("h3")?.textContent)),
    ).not.toContain("Sliding window log");
    await page.close();
  });

  it("two timed bursts let one less than twice the limit through a sliding counter", async () => {
    const page = await browser.open(`${file}#play=gap&limit=100&window=1m`);
    expect(await counted(page, "most")).toMatchObject({
      "Sliding window counter": 199,
      "Sliding window counter, strict": 100,
      "Sliding window log": 100,
    });
    await page.close();
  });

  it("a slow drip passes everywhere", async () => {
    const page = await browser.open(`${file}#play=drip`);
    expect(new Set(Object.values(await counted(page, "limited")))).toEqual(new Set([0]));
    await page.close();
  });
});

describe("a person", () => {
  it("sends requests with a click on a lane, with the button, and with a key", async () => {
    const page = await browser.open(`${file}#play=none`);
    const box = await (await page.waitForSelector(".lane:nth-child(3) .timeline")).boundingBox();
    if (box === null) throw new Error("there is no timeline");
    for (let i = 0; i < 8; i++) await page.mouse.click(box.x + box.width / 2, box.y + 40);
    await page.focus("[role=slider]");
    await page.keyboard.press("End");
    expect(await counted(page, "allowed")).toMatchObject({ "Fixed window": 8, GCRA: 2 });
    expect(await counted(page, "limited")).toMatchObject({ "Fixed window": 0, GCRA: 6 });
    await page.keyboard.press("Home");
    await page.keyboard.press("s");
    await page.keyboard.press("Enter");
    await page.click(".send");
    expect(await counted(page, "allowed")).toMatchObject({ "Fixed window": 3, GCRA: 2 });
    expect(new URL(page.url()).hash).toMatch(/play=none.*&sent=0%2C0%2C0%2C1\d{4}/);
    await page.click("text=Remove my requests");
    expect(await counted(page, "allowed")).toMatchObject({ "Fixed window": 0 });
    await page.close();
  });

  it("moves the clock by dragging, and sends nothing by that", async () => {
    const page = await browser.open(`${file}#play=edge`);
    const box = await (await page.waitForSelector(".lane:nth-child(1) .timeline")).boundingBox();
    if (box === null) throw new Error("there is no timeline");
    await page.mouse.move(box.x + box.width * 0.9, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 50);
    await page.mouse.move(box.x + box.width * 0.25, box.y + 50);
    await page.mouse.up();
    expect(Number(await page.getAttribute("[role=slider]", "aria-valuenow"))).toBeCloseTo(7500, -2);
    expect(await counted(page, "allowed")).toMatchObject({ "Fixed window": 0 });
    expect(await page.isVisible("text=Remove my requests")).toBe(false);
    await page.close();
  });

  it("plays and pauses", async () => {
    const page = await browser.open(`${file}#play=drip`);
    await page.click("[aria-label=Restart]");
    await expect.poll(() => counted(page, "allowed")).not.toMatchObject({ "Fixed window": 0 });
    const tops = await page.$$eval(".transport button", (all) => all.map((button) => button.getBoundingClientRect().top));
    expect(Math.max(...tops) - Math.min(...tops)).toBeLessThan(2);
    await page.click("button:text-is('Pause')");
    const at = await page.getAttribute("[role=slider]", "aria-valuenow");
    await page.focus("[role=slider]");
    await page.keyboard.press("Space");
    await expect.poll(() => page.getAttribute("[role=slider]", "aria-valuenow")).not.toBe(at);
    await page.keyboard.press("Space");
    expect(await page.isVisible("button:text-is('Play')")).toBe(true);
    await page.close();
  });

  it("sees a chosen scenario play at once, or its result if motion is reduced", async () => {
    const moving = await browser.open(file, { reducedMotion: "no-preference" });
    await choose(moving, "Burst");
    expect(await moving.isVisible("button:text-is('Pause')")).toBe(true);
    await moving.close();
    const still = await browser.open(file);
    await choose(still, "Burst");
    expect(await still.isVisible("button:text-is('Play')")).toBe(true);
    expect(await counted(still, "allowed")).toMatchObject({ "Sliding window log": 10 });
    await still.close();
  });

  it("edits the numbers of a policy, and is told what is wrong with them", async () => {
    const page = await browser.open(`${file}#play=edge`);
    const lane = page.locator(".lane").nth(4);
    await lane.locator("summary").click();
    await lane.getByLabel("capacity").fill("3");
    await lane.getByLabel("capacity").press("Enter");
    expect(await counted(page, "allowed")).toMatchObject({ "Token bucket, smooth": 6, "Fixed window": 20 });
    expect(await lane.locator(".numbers").textContent()).toBe("10 every 10s and 3 at once");
    await lane.getByLabel("refill").fill("<b>9");
    await lane.getByLabel("refill").press("Enter");
    expect(await lane.getByRole("alert").textContent()).toMatch(/`refill` .*<b>9/);
    expect(await lane.locator(".numbers").textContent()).toBe("10 every 10s and 3 at once");
    await page.locator(".shared").getByLabel("Limit").fill("4000");
    await page.locator(".shared").getByLabel("Limit").press("Enter");
    expect(await page.locator(".choices [role=alert]").textContent()).toBe(
      'Limit: must be a whole number from 1 to 1,000, but was "4000".',
    );
    await page.close();
  });

  it("shares what is chosen by a link", async () => {
    const page = await browser.open(file);
    await choose(page, "Random");
    await page.getByLabel("Seed").fill("77");
    await page.getByLabel("Seed").press("Enter");
    const lane = page.locator(".lane").nth(1);
    await lane.locator("summary").click();
    await lane.getByLabel("countRejected").check();
    await page.focus("[role=slider]");
    await page.keyboard.press("s");
    await page.keyboard.press("End");
    const other = await browser.open(page.url().replace("file://", ""));
    await other.focus("[role=slider]");
    await other.keyboard.press("End");
    expect(await shownIn(other)).toEqual(await shownIn(page));
    expect(await other.getByLabel("Seed").inputValue()).toBe("77");
    expect(await other.isVisible("#notice")).toBe(false);
    await page.close();
    await other.close();
  });
});

it("a link keeps every setting", () => {
  fc.assert(
    fc.property(
      fc.constantFrom("edge", "gap", "burst", "steady", "drip", "random", "none"),
      fc.integer({ min: 1, max: 1000 }),
      fc.integer({ min: 1, max: 86_400 }),
      fc.integer({ min: 0, max: 2 ** 32 - 1 }),
      fc.array(fc.integer({ min: 0, max: 3000 }), { maxLength: 9 }),
      (scenario, limit, seconds, seed, sent) => {
        const settings = {
          scenario,
          limit,
          windowMs: seconds * 1000,
          seed: scenario === "random" ? seed : 1,
          sent: sent.sort((a, b) => a - b),
        };
        expect(settingsOf(hashOf({ ...settings, edited: {} }))).toEqual({ settings: { ...settings, edited: {} }, problems: [] });
      },
    ),
  );
});

it("a report shows the requests of a log under its policies, without the scenarios", async () => {
  const embedded = join(folder, "report.html");
  writeFileSync(embedded, await bundlePage(join(__dirname, "embedded")));
  const page = await browser.open(embedded);
  // A request a second for five minutes.
  const [log, bucket] = await shownIn(page);
  expect(log).toMatchObject({ allowed: 150, limited: 150, most: 30 });
  expect(bucket).toMatchObject({ allowed: 154, limited: 146 });
  expect(await page.locator(".choices").count()).toBe(0);
  expect(new URL(page.url()).hash).toBe("");
  await page.close();
});

it("the links of the docs are valid", () => {
  const guide = readFileSync(join(__dirname, "../../../docs/choosing-an-algorithm.md"), "utf8");
  const hashes = [...guide.matchAll(/algorithms\.html(#\S+?)[)\s]/g)].map(([, hash = ""]) => hash);
  expect(hashes.length).toBeGreaterThan(2);
  for (const hash of hashes) expect(settingsOf(hash).problems).toEqual([]);
});

describe("a hostile link", () => {
  const links: [string, RegExp | undefined][] = [
    ["#play=<img src=x onerror=alert(1)>", /play: must be one of edge, gap, .*<img src=x onerror=alert\(1\)>/],
    ["#limit=1e99&window=99999999999d", /limit: must be a whole number from 1 to 1,000, but was "1e99"/],
    ["#limit=999999999&sent=-1", /sent: must be a whole number from 0 to 30,000/],
    [`#sent=${"1,".repeat(5000)}`, /sent: can have at most 1,000 requests/],
    ["#fixed-window=limit%3D9007199254740991 window%3D1s&play=none", undefined],
    ["#sliding-window-counter=limit%3D9007199254740991 window%3D9d", /exact arithmetic/],
    ["#sliding-window-counter=limit%3D9 window%3D1d buckets%3D86400000", /`buckets` can be at most 1,000 here/],
    ["#leaky-bucket=capacity%3D1000000 leak%3D1 every%3D1d", /timer/],
    ["#token-bucket=__proto__%3D1 10/s", /__proto__/],
    ["#__proto__=1&constructor=2&<script>alert(1)</script>", /there is no setting "constructor"/],
    ["#%ff%fe%00&play=%00%E2%80%AEedge", /⟨202E⟩/],
    [`#${"x=1&".repeat(20_000)}`, /there is no setting "x"/],
    ["#play", /play: must be one of/],
  ];

  it("is survived, and what is wrong is said", async () => {
    const page = await browser.open(file);
    const notice = page.locator("#notice");
    for (const [hash, message] of links) {
      await page.evaluate((text) => {
        const changed = new Promise((resolve) => addEventListener("hashchange", resolve, { once: true }));
        location.hash = text;
        return changed;
      }, hash);
      expect(await notice.isVisible()).toBe(message !== undefined);
      if (message !== undefined) expect(await notice.textContent()).toMatch(message);
      expect(await notice.locator("li").count()).toBeLessThanOrEqual(8);
      expect(await notice.locator("img, script").count()).toBe(0);
      expect((await shownIn(page)).map(({ state }) => state)).toEqual(Array(lanes.length).fill(expect.stringMatching(/./)));
    }
    await page.close();
  });

  it("is survived when the page opens with it", async () => {
    const page = await browser.open(`${file}${links[0]?.[0]}`);
    expect(await page.isVisible("#notice")).toBe(true);
    expect(await page.locator(".lane").count()).toBe(lanes.length);
    await page.close();
  });
});

describe("the look", () => {
  it.each([
    ["light", 1280],
    ["dark", 360],
  ] as const)("is clean for axe and fits: %s, %d pixels", async (colorScheme, width) => {
    const page = await browser.open(`${file}#play=burst&limit=<wrong>`, { colorScheme, viewport: { width, height: 800 } });
    await page.$$eval(".lane details", (all) => {
      for (const details of all) (details as HTMLDetailsElement).open = true;
    });
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() => (window as unknown as { axe: typeof axe }).axe.run({ resultTypes: ["violations"] }));
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
    await page.close();
  });
});
