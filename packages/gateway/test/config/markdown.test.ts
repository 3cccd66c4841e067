import { join } from "node:path";
import { expect, test } from "vitest";
import { settingsPage } from "./settings-page.js";

test("docs/gateway-settings.md is written from the settings: npx vitest run packages/gateway/test/config/markdown.test.ts --update", async () => {
  await expect(settingsPage()).toMatchFileSnapshot(join(__dirname, "../../../../docs/gateway-settings.md"));
});
