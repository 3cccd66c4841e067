import { statSync } from "node:fs";
import { openTable } from "@floodgate/test-servers/browser";
import axe from "axe-core";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { simulate } from "../../src/index.js";
import { accessLog, lineAt, logOf, randomLog, rules } from "../logs.js";
import { startBrowser, type TestBrowser } from "./browser.js";
import { Reports } from "./reports.js";

let browser: TestBrowser;
const reports = new Reports();

beforeAll(async () => {
  browser = await startBrowser();
});

afterAll(async () => {
  await browser?.close();
  reports.delete();
});

afterEach(() => {
  expect(browser.complaints()).toEqual([]);
});

/** What the page says for the limit that the line stands at. */
async function said(page: Page): Promise<{ limit: number; limited: number; clientsLimited: number }> {
  const [limit, limited, clientsLimited] = await page.$$eval(".handle span, .readout .touches b", (all) =>
    all.map((each) => Number(each.textContent?.replaceAll(",", ""))),
  );
  return { limit: limit as number, limited: limited as number, clientsLimited: clientsLimited as number };
}

describe("the line of the limit", () => {
  const log = randomLog(11, 900);
  const yaml = (limit: number) => `rules:
  - { name: per-ip, limit: ${limit}, window: 1m }
  - { name: bucket, mode: shadow, policy: { algorithm: token-bucket, capacity: 12, refill: 1, every: 5s } }`;
  let page: Page;

  beforeAll(async () => {
    page = await browser.open(await reports.write(log, yaml(20)));
  });

  afterAll(() => page?.close());

  async function expectSimulated(): Promise<number> {
    const shown = await said(page);
    const { rules: simulated } = await simulate([logOf(log)], rules(yaml(shown.limit)));
    expect(shown).toEqual({ limit: shown.limit, limited: simulated[0]?.limited, clientsLimited: simulated[0]?.clientsLimited });
    return shown.limit;
  }

  it("begins at the rule's own limit", async () => {
    expect(await expectSimulated()).toBe(20);
    expect(await page.textContent(".readout .change")).toBe("This is the limit as it is.");
  });

  it("is dragged by the pointer, to numbers that simulate says for the limit", async () => {
    const { x, y, width } = (await page.locator(".plot").boundingBox()) as { x: number; y: number; width: number };
    const handle = (await page.locator(".handle").boundingBox()) as { x: number; width: number };
    await page.mouse.move(handle.x + handle.width / 2, y + 120);
    await page.mouse.down();
    const limits: number[] = [];
    for (const part of [0.9, 0.7, 0.45, 0.2]) {
      await page.mouse.move(x + width * part, y + 150);
      limits.push(await expectSimulated());
    }
    await page.mouse.up();
    await page.mouse.move(x + width * 0.9, y + 150);
    expect(await expectSimulated()).toBe(limits.at(-1));
    expect(limits).toEqual([...new Set(limits)].sort((a, b) => b - a));
  });

  it("is moved by the keyboard, and tells a screen reader what it says", async () => {
    await page.getByRole("button", { name: "back to 20" }).click();
    await page.focus(".handle");
    await page.keyboard.press("ArrowLeft");
    const less = await expectSimulated();
    expect(less).toBeLessThan(20);
    await page.keyboard.press("Home");
    const least = await expectSimulated();
    expect(least).toBeLessThanOrEqual(less);
    await page.keyboard.press("PageUp");
    expect(await expectSimulated()).toBeGreaterThan(least);
    await page.keyboard.press("End");
    const { limit, limited } = await said(page);
    expect(limited).toBe(0);
    const handle = page.getByRole("slider");
    expect(await handle.getAttribute("aria-valuemin")).toBe(String(least));
    expect(await handle.getAttribute("aria-valuemax")).toBe(String(limit));
    expect(await handle.getAttribute("aria-valuenow")).toBe(String(limit));
    expect(await handle.getAttribute("aria-valuetext")).toBe(`${limit} per 1m: 0\u00a0requests and 0\u00a0clients limited`);
  });

  it("goes to the least limit for a share of the clients", async () => {
    await page.getByRole("button", { name: "5\u00a0%" }).click();
    const { limit, clientsLimited } = await said(page);
    const { rules: simulated } = await simulate([logOf(log)], rules(yaml(limit)));
    expect(clientsLimited / (simulated[0]?.clients ?? 0)).toBeLessThanOrEqual(0.05);
    await expectSimulated();
  });

  it("is remembered for each rule, and changes the limited requests over time", async () => {
    await openTable(page, "#traffic details");
    const limitedInTable = () =>
      page.$$eval("#traffic tbody td:last-child", (cells) =>
        cells.reduce((sum, cell) => sum + Number(cell.textContent?.replaceAll(",", "")), 0),
      );
    const { limit, limited } = await said(page);
    expect(await limitedInTable()).toBe(limited);
    await page.getByRole("radio", { name: /bucket/ }).check();
    expect(await said(page)).toMatchObject({ limit: 12 });
    expect(await limitedInTable()).toBe((await said(page)).limited);
    await page.getByRole("radio", { name: /per-ip/ }).check();
    expect(await said(page)).toMatchObject({ limit, limited });
  });
});

describe("the report of a real log", () => {
  let page: Page;

  beforeAll(async () => {
    page = await browser.open(await reports.write(accessLog, "rules: [{ name: per-ip, limit: 20, window: 1m }]"));
  });

  afterAll(() => page?.close());

  it("says first in words what would have happened", async () => {
    const { rejected, requests } = await simulate([logOf(accessLog)], rules("rules: [{ name: per-ip, limit: 20, window: 1m }]"));
    expect(await page.textContent("h1")).toBe(`${rejected} of ${requests}\u00a0requests would have been rejected`);
  });

  it("shows each algorithm's verdicts on the same requests", async () => {
    const verdicts = await page.$$eval(".verdicts li", (all) =>
      all.map((each) => [each.querySelector("b")?.textContent, each.querySelector(".verdict")?.textContent]),
    );
    expect(verdicts.map(([algorithm]) => algorithm)).toEqual([
      "fixed-window",
      "sliding-window-counter",
      "sliding-window-log",
      "token-bucket",
      "leaky-bucket",
      "gcra",
    ]);
    const totals = verdicts.map(([, text]) => [...(text ?? "").matchAll(/(\d+) (?:allowed|limited)/g)].map(([, digits]) => Number(digits)));
    const sums = totals.map(([allowed = 0, limited = 0]) => allowed + limited);
    expect(new Set(sums).size).toBe(1);
    expect(totals[0]?.[1]).toBeGreaterThan(0);
  });

  it("plays the burst in the browser, with the verdicts that Node computed", async () => {
    await page.getByText(/^Play these requests/).click();
    await page.locator(".player .algorithms").waitFor();
    const limited = (selector: string) => page.$$eval(selector, (all) => all.map((each) => each.textContent));
    expect(await limited(".player .counts .limited b")).toEqual(await limited(".verdicts .verdict b:last-of-type"));
  });

  it.each(["light", "dark"] as const)("has no fault for a screen reader or weak eyes in %s", async (colorScheme) => {
    await page.emulateMedia({ colorScheme });
    if (colorScheme === "light") await page.evaluate(axe.source);
    const faults = await page.evaluate(async () => {
      const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run({ resultTypes: ["violations"] });
      return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map(({ html }) => html).join(" ")}`);
    });
    expect(faults).toEqual([]);
  });

  it("fits a phone without scrolling sideways, and paper", async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    await page.emulateMedia({ media: "print" });
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    await page.emulateMedia({ media: "screen" });
    await page.setViewportSize({ width: 1200, height: 900 });
  });
});

describe("a hostile log", () => {
  const names = [
    `</script><img src=x onerror=alert(1)>`,
    `<!--<script>alert(2)</script>`,
    "\u202egnp.exe\u202c",
    "x".repeat(10_000),
    "__proto__",
    "{{data}} $& $' \\u003c/script>",
    "\u2028alert(3)",
  ];
  const escaped = (name: string): string => name.replaceAll('"', '\\"');
  const log = names.flatMap((name) =>
    Array.from({ length: 5 }, (_, i) => lineAt("192.0.2.1", i, `GET /${encodeURI(name.slice(0, 50))} HTTP/1.1`, escaped(name))),
  );
  const yaml = `rules:
  - { name: "</script><b onclick=alert(4)>", key: "header:user-agent", limit: 3, window: 1m }
  - { name: __proto__, key: global, limit: 30, window: 1m, mode: shadow }`;

  it("stays text, and becomes no element", async () => {
    const file = await reports.write(log.join("\n"), yaml, {}, "floodgate simulate '</script><script>alert(5)</script>'");
    const page = await browser.open(file);
    const clients = await page.$$eval("#clients th[scope=row]", (all) => all.map((each) => each.textContent));
    expect(clients).toHaveLength(names.length);
    expect(clients).toEqual(expect.arrayContaining([names[0], names[1], "__proto__", "⟨202E⟩gnp.exe⟨202C⟩", "⟨2028⟩alert(3)"]));
    expect(Math.max(...clients.map((name) => name?.length ?? 0))).toBeLessThan(300);
    expect(await page.$$eval("img, iframe, [onerror], [onclick], body b[onclick]", (found) => found.length)).toBe(0);
    expect(await page.$$eval("script", (found) => found.length)).toBe(2);
    expect(await page.textContent("footer")).toContain("</script><script>alert(5)</script>");
    // The rules count by different keys, so the share names its clients.
    const limited = page.locator(".figure", { hasText: "Clients ever limited" });
    expect(await limited.locator("dd").textContent()).toMatch(new RegExp(`100\\s% of ${names.length} by header:user-agent$`));
    expect(await page.$$eval(".rule .foreign", (all) => all.map((each) => each.textContent))).toEqual([
      "</script><b onclick=alert(4)>",
      "__proto__",
    ]);
    await page.getByRole("radio", { name: /__proto__/ }).check();
    await page.setViewportSize({ width: 360, height: 740 });
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    await page.close();
  });
});

describe("the page opens without a fault", () => {
  const perIp = "rules: [{ name: a, limit: 3, window: 1m }]";
  let file: string;
  let page: Page;

  beforeAll(async () => {
    file = await reports.write("", perIp);
    page = await browser.open(file);
  });

  afterAll(() => page?.close());

  it.each([
    ["without a request", "", perIp],
    ["with one request", lineAt("192.0.2.1", 0), perIp],
    ["with one client", Array.from({ length: 9 }, (_, i) => lineAt("192.0.2.1", i)).join("\n"), perIp],
    ["at one instant", Array.from({ length: 40 }, (_, i) => lineAt(`192.0.2.${i % 5}`, 0)).join("\n"), perIp],
    ["over years", Array.from({ length: 40 }, (_, i) => lineAt("192.0.2.1", i * 10_000_000)).join("\n"), perIp],
    ["with a limit of 0", randomLog(1, 60), "rules: [{ name: a, limit: 0, window: 1m }]"],
    ["with a rule that matches nothing", randomLog(1, 60), "rules: [{ name: a, match: { path: /no }, limit: 3, window: 1m }]"],
    ["with costs", randomLog(1, 60), "rules: [{ name: a, cost: 9, limit: 12, window: 1m }]"],
    [
      "with a queue",
      randomLog(1, 200),
      "rules: [{ name: a, policy: { algorithm: leaky-bucket, capacity: 5, leak: 1, every: 1s, maxDelayMs: 2000 } }]",
    ],
  ])("%s", async (_, log, yaml) => {
    await reports.write(log, yaml, {}, "floodgate simulate", file);
    await page.reload();
    expect(await page.textContent("h1")).toMatch(/request/);
    if (log !== "" && !yaml.includes("/no")) {
      await page.focus(".handle");
      for (const key of ["End", "Home", "ArrowRight"]) await page.keyboard.press(key);
      expect(await said(page)).toEqual({ limit: expect.any(Number), limited: expect.any(Number), clientsLimited: expect.any(Number) });
    }
  });

  it("of less than 2 MB for a log of many clients, over a long time, under many rules", async () => {
    const lines: string[] = [];
    // Enough to fill each of the 360 intervals, and names that are cut.
    for (let i = 0; i < 800; i++) lines.push(lineAt(`10.${(i * 7) % 200}.${i % 13}.1`, i * 30_000, "GET /", "y".repeat(250)));
    const many = Array.from(
      { length: 14 },
      (_, i) => `  - { name: rule-${i}, key: [ip, "header:user-agent"], limit: ${i + 1}, window: 1d, mode: shadow }`,
    );
    await reports.write(lines.join("\n"), `rules:\n${many.join("\n")}`, { grid: 40, top: 1000 }, "floodgate simulate", file);
    expect(statSync(file).size).toBeLessThan(2_000_000);
    await page.reload();
    expect(await page.$$eval(".rule", (all) => all.length)).toBe(14);
    await page.getByRole("radio", { name: /rule-13/ }).check();
    expect(await page.textContent("#limits .empty")).toBe("No other limits were tried for this rule.");
  });
});
