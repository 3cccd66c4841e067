import { readFileSync } from "node:fs";
import { bundlePage, pages } from "@floodgate/pages";
import { expect, it } from "vitest";

it.each(pages.committed)("$file is as its source says", async ({ source, file }) => {
  const isCurrent = readFileSync(file, "utf8") === (await bundlePage(source));
  expect(isCurrent, `${file} is older than its source. Write it with: npm run pages`).toBe(true);
});
