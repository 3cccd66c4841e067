import { execFile } from "node:child_process";
import { createReadStream, existsSync, readdirSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { repository } from "@floodgate/docs";
import { chromiumOptions } from "@floodgate/test-servers";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

const folder = join(repository, "dist/site");
const types: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

let server: Server;
let browser: Browser;
let origin: string;
let complaints: string[] = [];

beforeAll(async () => {
  await promisify(execFile)(process.execPath, [join(repository, "tools/site/dist/main.js")], { cwd: repository });
  server = createServer(({ url = "/" }, response) => {
    const path = decodeURIComponent(new URL(url, "http://localhost").pathname);
    const file = join(folder, path.endsWith("/") ? `${path}index.html` : path);
    const found = existsSync(file) && statSync(file).isFile();
    response.writeHead(found ? 200 : 404, { "content-type": types[extname(file)] ?? "application/octet-stream" });
    if (found) createReadStream(file).pipe(response);
    else response.end();
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  browser = await chromium.launch(chromiumOptions());
}, 600_000);

afterAll(async () => {
  await browser?.close();
  server?.close();
});

afterEach(() => {
  const all = complaints;
  complaints = [];
  expect(all).toEqual([]);
});

/** The addresses of all pages. */
function pages(): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return files.filter((file) => file.endsWith(".html") && file !== "404.html").map((file) => `/${file}`);
}

/** Opens a page in a browser that reports errors, and every request that leaves the site. */
async function open(options: BrowserContextOptions = {}): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options });
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(`${page.url()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`${page.url()}: ${error}`));
  page.on(
    "request",
    (request) => !/^(?:data|blob):/.test(request.url()) && !request.url().startsWith(origin) && complaints.push(request.url()),
  );
  return page;
}

describe("the documentation site", { timeout: 300_000 }, () => {
  it("has no dead link and no dead anchor, reports no error, loads nothing from elsewhere, and fits a phone", async () => {
    const page = await open({ viewport: { width: 360, height: 740 } });
    const known = new Map<string, { ids: string[]; links: string[]; width: number }>();
    for (const path of pages()) {
      await page.goto(`${origin}${path}`, { waitUntil: "load" });
      known.set(
        path,
        await page.evaluate(() => ({
          ids: [...document.querySelectorAll("[id]")].map(({ id }) => id),
          links: [...document.querySelectorAll("a[href]")].map((link) => (link as HTMLAnchorElement).href),
          width: document.documentElement.scrollWidth,
        })),
      );
    }
    const dead: string[] = [];
    for (const [path, { links, width }] of known) {
      if (width > 360) dead.push(`${path} is ${width} pixels wide`);
      for (const link of new Set(links)) {
        const { origin: where, pathname, hash } = new URL(link);
        if (where !== origin) continue;
        const target = decodeURIComponent(pathname.endsWith("/") ? `${pathname}index.html` : pathname);
        const isAnchor = hash !== "" && target !== "/algorithms.html";
        if (!existsSync(join(folder, target))) dead.push(`${path} -> ${target}`);
        else if (isAnchor && known.get(target)?.ids.includes(decodeURIComponent(hash.slice(1))) === false)
          dead.push(`${path} -> ${target}${hash}`);
      }
    }
    expect(dead).toEqual([]);
    await page.close();
  });

  it.each([
    ["onStoreError", "onStoreError"],
    ["nginx", "nginx"],
    ["Cluster", "Cluster"],
    ["slidingWindowLog", "slidingWindowLog"],
  ])("finds %s", async (words, found) => {
    const page = await open();
    await page.goto(`${origin}/overview.html`);
    await page.keyboard.press("Control+k");
    await page.locator(".VPLocalSearchBox input").fill(words);
    const first = page.locator(".VPLocalSearchBox .result").first();
    await first.waitFor();
    await first.click();
    await page.waitForURL((url) => url.pathname !== "/overview.html" || url.hash !== "");
    await page.locator(".VPLocalSearchBox").waitFor({ state: "detached" });
    expect((await page.locator(".vp-doc").textContent())?.toLowerCase()).toContain(found.toLowerCase());
    await page.close();
  });

  it("opens the menu on a phone, and goes to a page", async () => {
    const page = await open({ viewport: { width: 360, height: 740 } });
    await page.goto(`${origin}/overview.html`);
    await page.locator(".VPLocalNav .menu").click();
    await page.locator(".VPSidebar.open .item:has-text('API reference')").first().click();
    await page.locator(".VPSidebar.open a:has(p:text-is('store-redis'))").last().click();
    // The address changes before the page does.
    await page.locator(".vp-doc h1:has-text('store-redis')").waitFor();
    expect(new URL(page.url()).pathname).toBe("/api/store-redis.html");
    await page.close();
  });
});
