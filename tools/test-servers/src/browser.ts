import { type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { program } from "./programs.js";

/** One browser for a file of tests, which remembers what its pages complained about. */
export interface TestBrowser {
  newPage(options?: BrowserContextOptions): Promise<Page>;
  /** Notes a complaint of a test's own. */
  complain(text: string): void;
  /** Errors and warnings on consoles, uncaught errors, violations of the Content-Security-Policy, and dialogs, since the last call. */
  complaints(): string[];
  close(): Promise<void>;
}

/** Chromium would leave crash reports and caches at home. */
const noFolder = "/dev/null";

/** Starts Chromium with an empty profile, as root too, and without the internet. */
export async function startBrowser(): Promise<TestBrowser> {
  const browser = await chromium.launch({
    executablePath: program("chromium"),
    chromiumSandbox: false,
    args: ["--disable-gpu", "--disable-quic"],
    env: { ...(process.env as Record<string, string>), HOME: noFolder, XDG_CONFIG_HOME: noFolder, XDG_CACHE_HOME: noFolder },
  });
  let complaints: string[] = [];
  const complain = (text: string): void => void complaints.push(text);
  return {
    complain,
    async newPage(options = {}) {
      const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, reducedMotion: "reduce", locale: "en-US", ...options });
      page.on("console", (message) => ["error", "warning"].includes(message.type()) && complain(`console: ${message.text()}`));
      page.on("pageerror", (error) => complain(`uncaught: ${error}`));
      page.on("dialog", (dialog) => {
        complain(`dialog: ${dialog.message()}`);
        void dialog.dismiss();
      });
      // Text, because it runs in the page.
      await page.addInitScript(`addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
        console.error("violates " + violatedDirective + ": " + blockedURI))`);
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

/** Opens the element `details` of a table of figures, if it is closed, and waits until the page has written the table. */
export async function openTable(page: Page, details: string): Promise<void> {
  await page.$eval(details, (element) => element.setAttribute("open", ""));
  await page.waitForSelector(`${details} th`);
}
