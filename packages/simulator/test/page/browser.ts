import { type TestBrowser as Browser, startBrowser as start } from "@floodgate/test-servers/browser";
import type { BrowserContextOptions, Page } from "playwright-core";

export interface TestBrowser extends Browser {
  /** Opens a file of this disk: its path, and a hash. A request for anything else is a complaint. */
  open(path: string, options?: BrowserContextOptions): Promise<Page>;
}

export async function startBrowser(): Promise<TestBrowser> {
  const browser = await start();
  return {
    ...browser,
    async open(path, options) {
      const page = await browser.newPage(options);
      page.on("request", (request) => {
        if (request.url().split("#")[0] !== `file://${path.split("#")[0]}`) browser.complain(`request: ${request.url()}`);
      });
      await page.goto(`file://${path}`);
      return page;
    },
  };
}
