import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listen } from "../../../test/listen.js";
import { startBrowser, type TestBrowser } from "../src/browser.js";

describe("Chromium", () => {
  let app: Server;
  let browser: TestBrowser;

  beforeAll(async () => {
    app = createServer((_req, res) => {
      res.setHeader("Content-Type", "text/html");
      res.end("<title>before</title><script>document.title = 'after';</script>");
    });
    browser = await startBrowser();
  });

  afterAll(async () => {
    await browser?.close();
    app.close();
  });

  it("shows a page and runs its scripts", async () => {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${await listen(app)}/`);
    expect(await page.title()).toBe("after");
    await page.close();
  });
});
