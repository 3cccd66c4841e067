import { chromiumOptions } from "@floodgate/test-servers";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

/** One browser for a file, which remembers what its pages complained about. */
export interface TestBrowser {
  /** Opens a dashboard, and waits until it shows its figures. */
  open(port: number, options?: BrowserContextOptions): Promise<Page>;
  /** Errors on consoles, uncaught errors, violations of the Content-Security-Policy, and dialogs, since the last call. */
  complaints(): string[];
  close(): Promise<void>;
}

export async function startBrowser(): Promise<TestBrowser> {
  const browser: Browser = await chromium.launch(await chromiumOptions());
  let complaints: string[] = [];
  const complain = (text: string): void => void complaints.push(text);
  return {
    async open(port, options = {}) {
      const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, reducedMotion: "reduce", locale: "en-US", ...options });
      page.on("console", (message) => ["error", "warning"].includes(message.type()) && complain(`console: ${message.text()}`));
      page.on("pageerror", (error) => complain(`uncaught: ${error}`));
      page.on("dialog", (dialog) => {
        complain(`dialog: ${dialog.message()}`);
        void dialog.dismiss();
      });
      await page.addInitScript(() => {
        addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
          console.error(`violates ${violatedDirective}: ${blockedURI}`),
        );
      });
      await page.goto(`http://localhost:${port}/_floodgate`);
      await page.waitForSelector("main:not(.waiting)");
      await page.waitForSelector(".bar .state:text-is('Live')");
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

/** The table of everything that was counted: for each rule its figures by the names of their columns. Zeros are left out. */
export async function totalsOf(page: Page): Promise<Record<string, Record<string, number>>> {
  await page.$eval("#rules details", (details) => {
    (details as HTMLDetailsElement).open = true;
  });
  const [columns = [], ...rows] = await page.$$eval("#rules details table tr", (all) =>
    all.map((row) => [...row.children].map((cell) => cell.textContent ?? "")),
  );
  const figures = (cells: readonly string[]) =>
    cells.map((cell, i) => [columns[i + 1] ?? "", Number(cell.replaceAll(",", ""))] as const).filter(([, figure]) => figure > 0);
  return Object.fromEntries(rows.map(([rule = "", ...cells]) => [rule, Object.fromEntries(figures(cells))]));
}
