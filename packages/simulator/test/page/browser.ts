import { chromiumOptions } from "@floodgate/test-servers";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

/** One browser for a file of tests, which remembers what its pages complained about. */
export interface TestBrowser {
  /** Opens a file of this disk: its path, and a hash. */
  open(path: string, options?: BrowserContextOptions): Promise<Page>;
  /** Errors and warnings on consoles, uncaught errors, violations of the Content-Security-Policy, dialogs and requests, since the last call. */
  complaints(): string[];
  close(): Promise<void>;
}

export async function startBrowser(): Promise<TestBrowser> {
  const browser: Browser = await chromium.launch(await chromiumOptions());
  let complaints: string[] = [];
  const complain = (text: string): void => void complaints.push(text);
  return {
    async open(path, options = {}) {
      const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, reducedMotion: "reduce", locale: "en-US", ...options });
      page.on("console", (message) => ["error", "warning"].includes(message.type()) && complain(`console: ${message.text()}`));
      page.on("pageerror", (error) => complain(`uncaught: ${error}`));
      page.on("dialog", (dialog) => {
        complain(`dialog: ${dialog.message()}`);
        void dialog.dismiss();
      });
      page.on("request", (request) => {
        if (request.url().split("#")[0] !== `file://${path.split("#")[0]}`) complain(`request: ${request.url()}`);
      });
      await page.addInitScript(() => {
        addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
          console.error(`violates ${violatedDirective}: ${blockedURI}`),
        );
      });
      await page.goto(`file://${path}`);
      return page;
    },
    complaints() {
      const all = complaints;
      complaints = [];
      return all;
    },
    close: () => browser.close(),
  };
}
