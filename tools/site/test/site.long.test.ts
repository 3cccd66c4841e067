import { execFile } from "node:child_process";
import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { extname, join, posix } from "node:path";
import { promisify } from "node:util";
import { type MarkdownFile, parseMarkdown, repository } from "@floodgate/docs";
import { startBrowser, type TestBrowser } from "@floodgate/test-servers/browser";
import type { BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { listen } from "../../../test/listen.js";

const folder = join(repository, "dist/site");
const types: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

let server: Server;
let browser: TestBrowser;
let origin: string;

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
  origin = `http://127.0.0.1:${await listen(server)}`;
  browser = await startBrowser();
}, 600_000);

afterAll(async () => {
  await browser?.close();
  server?.close();
});

afterEach(() => {
  expect(browser.complaints()).toEqual([]);
});

/** The addresses of all pages. */
function pages(): string[] {
  return files(".html")
    .filter((file) => file !== "404.html")
    .map((file) => `/${file}`);
}

function files(end: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(end));
}

function markdown(file: string): MarkdownFile {
  return parseMarkdown(file, readFileSync(join(folder, file), "utf8"));
}

/** Opens a page in a browser that reports errors, and every request that leaves the site. */
async function open(options: BrowserContextOptions = {}): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  page.on("request", (request) => {
    const url = request.url();
    if (!/^(?:data|blob):/.test(url) && !url.startsWith(origin)) browser.complain(url);
  });
  return page;
}

describe("the documentation site", { timeout: 300_000 }, () => {
  it("has no dead link and no dead anchor, reports no error, loads nothing from elsewhere, fits a phone, and cuts no table", async () => {
    const page = await open({ viewport: { width: 360, height: 740 } });
    const known = new Map<string, { ids: string[]; links: string[]; width: number }>();
    const dead: string[] = [];
    const cutTables = () =>
      page.evaluate(
        () => [...document.querySelectorAll(".vp-doc table")].filter((table) => table.scrollWidth > table.clientWidth + 1).length,
      );
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
      if ((await cutTables()) > 0) dead.push(`${path} cuts a table on a phone`);
      await page.setViewportSize({ width: 1440, height: 900 });
      if ((await cutTables()) > 0) dead.push(`${path} cuts a table on a wide screen`);
      await page.setViewportSize({ width: 360, height: 740 });
    }
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
    ["login", "Limit by user, API key or tenant"],
    ["nginx", "nginx"],
    ["Cluster", "Cluster"],
    ["slidingWindowLog", "slidingWindowLog"],
  ])("finds %s", async (words, found) => {
    const page = await open();
    await page.goto(`${origin}/overview.html`);
    // The page listens to keys only when its script has run.
    await page.waitForFunction(() => "__vue_app__" in (document.querySelector("#app") ?? {}));
    await page.keyboard.press("Control+k");
    await page.locator(".VPLocalSearchBox input").fill(words);
    const first = page.locator(".VPLocalSearchBox .result").first();
    await first.waitFor();
    await first.click();
    await page.waitForURL((url) => url.pathname !== "/overview.html" || url.hash !== "");
    await page.locator(".VPLocalSearchBox").waitFor({ state: "detached" });
    // The address changes before the page does.
    await page.locator(".vp-doc", { hasText: found }).waitFor();
    await page.close();
  });

  it("has an example for each framework on its home, and algorithms that play", async () => {
    const page = await open({ reducedMotion: "no-preference" });
    await page.goto(`${origin}/`);
    const packages: string[] = [];
    for (const tab of await page.locator(".vp-code-group .tabs label").all()) {
      await tab.click();
      const text = await page.locator(".vp-code-group .blocks > :visible code").textContent();
      packages.push(/from "@floodgate\/(\w+)"/.exec(text ?? "")?.[1] ?? "");
    }
    expect(packages).toEqual(["express", "koa", "hono", "fastify", "nestjs", "fetch", "node"]);
    await page.locator("iframe.algorithms").scrollIntoViewIfNeeded();
    const algorithms = page.frameLocator("iframe.algorithms");
    await algorithms.locator(".play", { hasText: "Pause" }).waitFor();
    expect(await algorithms.locator(".lane:visible").count()).toBe(3);
    const cut = await algorithms.locator("html").evaluate((html) => html.scrollHeight > html.clientHeight);
    expect(cut).toBe(false);
    await page.close();
  });

  it("leads from the page of all algorithms back to its home", async () => {
    const page = await open();
    await page.goto(`${origin}/algorithms.html`);
    await page.locator("header a").click();
    await page.locator("h1", { hasText: "Floodgate" }).waitFor();
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

describe("the site for programs that read Markdown", () => {
  /** Pages that show a file of the repository are found by the links of others. */
  const listed = () =>
    pages().flatMap((page) => (/^\/(?:files\/|algorithms\.html)/.test(page) ? [] : [page.slice(1).replace(/html$/, "md")]));

  it("has each page as Markdown beside its HTML", () => {
    const missing = pages().filter((page) => page !== "/algorithms.html" && !existsSync(join(folder, page.replace(/html$/, "md"))));
    expect(missing).toEqual([]);
    expect(listed().length).toBeGreaterThan(90);
  });

  it("has no dead link and no dead anchor", () => {
    const known = new Map([...files(".md"), "llms.txt", "llms-full.txt"].map((file) => [file, markdown(file)]));
    const dead: string[] = [];
    for (const [file, { links }] of known) {
      for (const { href, line } of links.filter((link) => !/^[a-z]+:/.test(link.href))) {
        // An anchor alone is one of its page, which stands among others in llms-full.txt.
        if (file === "llms-full.txt" && href.startsWith("#")) continue;
        const [path = "", anchor] = href.split("#");
        const target = path === "" ? file : posix.join(posix.dirname(file), decodeURI(path));
        const isPage = existsSync(join(folder, target)) && statSync(join(folder, target)).isFile();
        if (!isPage || path.startsWith("/")) dead.push(`${file}:${line} -> ${href}`);
        const page = known.get(target);
        if (anchor === undefined || page === undefined) continue;
        const isAnchor = page.headings.some((heading) => heading.anchor === anchor) || page.text.includes(`<a id="${anchor}">`);
        if (!isAnchor) dead.push(`${file}:${line} -> ${href}`);
      }
    }
    expect(dead).toEqual([]);
  });

  it("llms.txt has a title, a summary, and one link to each page with what it is for", () => {
    const { text, links, headings } = markdown("llms.txt");
    expect(text).toMatch(/^# Floodgate\n\n> Rate limiting for .+\n/);
    expect(headings.filter(({ level }) => level !== 2).map(({ text: title }) => title)).toEqual(["Floodgate"]);
    const items = [...text.matchAll(/^- \[[^\]]+\]\(([^)]+)\): .+/gm)].map(([, href]) => href);
    expect([...items].sort()).toEqual(listed().sort());
    expect(links.length).toBe(items.length + 2);
  });

  it("llms-full.txt has the text of each page once, in the order of llms.txt", () => {
    const [, ...parts] = readFileSync(join(folder, "llms-full.txt"), "utf8").split(/^---\nurl: (.+)\n---\n\n/m);
    const urls = parts.filter((_, i) => i % 2 === 0);
    expect(urls).toEqual(
      markdown("llms.txt")
        .links.map(({ href }) => href)
        .slice(2),
    );
    const titles = urls.map((url, i) => [url, parts[2 * i + 1]?.split("\n")[0]]);
    expect(titles).toEqual(urls.map((url) => [url, markdown(url).text.split("\n")[0]]));
  });
});
