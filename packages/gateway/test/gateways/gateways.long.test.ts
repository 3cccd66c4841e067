import { describe, expect, test } from "vitest";
import { apachePage, apacheScript, apacheScriptFile, gateways } from "./gateways.js";
import { describeGateway } from "./suite.js";

test("Apache's page shows the settings of the script as they are", () => {
  const [, ...settings] = apachePage.config(apacheScriptFile).split("\n");
  expect(apacheScript).toContain(settings.join("\n"));
});

describe("With the config of its page,", () => {
  for (const gateway of gateways) describeGateway(gateway, gateway.version());
});
