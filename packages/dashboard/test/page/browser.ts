import { type TestBrowser as Browser, openTable, startBrowser as start } from "@floodgate/test-servers/browser";
import type { BrowserContextOptions, Page } from "playwright-core";

export interface TestBrowser extends Browser {
  /** Opens a dashboard, and waits until it shows its figures. */
  open(port: number, options?: BrowserContextOptions): Promise<Page>;
}

export async function startBrowser(): Promise<TestBrowser> {
  const browser = await start();
  return {
    ...browser,
    async open(port, options) {
      const page = await browser.newPage(options);
      await page.goto(`http://localhost:${port}/_floodgate`);
      await page.waitForSelector("main > section");
      await page.waitForSelector(".bar .state:text-is('Live')");
      return page;
    },
  };
}

const wholeRow = "All requests, each once";

/** The table of everything that was counted: for each rule its figures by the names of their columns. Zeros are left out. */
export async function totalsOf(page: Page): Promise<Record<string, Record<string, number>>> {
  await openTable(page, "#rules details");
  const [columns = [], ...rows] = await page.$$eval("#rules details table tr", (all) =>
    all.map((row) => [...row.children].map((cell) => cell.textContent ?? "")),
  );
  const figures = (cells: readonly string[]) =>
    cells.map((cell, i) => [columns[i + 1] ?? "", Number(cell.replaceAll(",", ""))] as const).filter(([, figure]) => figure > 0);
  return Object.fromEntries(
    rows.filter(([rule]) => rule !== wholeRow).map(([rule = "", ...cells]) => [rule, Object.fromEntries(figures(cells))]),
  );
}
