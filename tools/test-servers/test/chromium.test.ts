import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startBrowser, type TestBrowser } from "../src/browser.js";

describe("Chromium", () => {
  let app: Server;
  let browser: TestBrowser;

  beforeAll(async () => {
    app = createServer((_req, res) => {
      res.setHeader("Content-Type", "text/html");
      res.end("<title>before</title><script>document.title = 'after';</script>");
    }).listen(0, "127.0.0.1");
    browser = await startBrowser();
  });

  afterAll(async () => {
    await browser?.close();
    app.close();
  });

  it("shows a page and runs its scripts", async () => {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(app.address() as AddressInfo).port}/`);
    expect(await page.title()).toBe("after");
    await page.close();
  });
});
