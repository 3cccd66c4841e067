import { readFileSync } from "node:fs";
import { join } from "node:path";
import { apache, luaSocket, startApache } from "@floodgate/test-servers";
import { expect, test } from "vitest";
import { Page, replaced } from "./page.js";
import { describeGateway } from "./suite.js";

const page = new Page("apache.md");
const file = "/etc/apache2/sites-available/app.conf";
const scriptFile = "/etc/apache2/floodgate.lua";
const shipped = readFileSync(join(__dirname, "../../gateways/apache.lua"), "utf8");

test("the page shows the settings of the script as they are", () => {
  const [, ...settings] = page.config(scriptFile).split("\n");
  expect(shipped).toContain(settings.join("\n"));
});

describeGateway({
  name: "Apache",
  install: async () => {
    await apache();
    await luaSocket();
  },
  start: ({ ask, app, deadlineMs }, onFailure) => {
    const script = onFailure === "open" ? shipped : page.changed(scriptFile, shipped);
    return startApache({
      modules: ["proxy", "proxy_http", "lua"],
      config: ({ port, dir }) =>
        replaced(page.config(file), {
          "*:80": `*:${port}`,
          [scriptFile]: join(dir, "floodgate.lua"),
          "127.0.0.1:3000": `127.0.0.1:${app}`,
        }),
      files: {
        "floodgate.lua": replaced(script, {
          '"127.0.0.1", 8081': `"127.0.0.1", ${ask}`,
          "timeout_seconds = 0.25": `timeout_seconds = ${deadlineMs / 1000}`,
        }),
      },
    });
  },
  passesBody: true,
  closedStatus: [503],
  connections: undefined,
});
