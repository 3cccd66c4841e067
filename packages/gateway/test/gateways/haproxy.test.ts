import { readFileSync } from "node:fs";
import { join } from "node:path";
import { haproxy, startHaproxy } from "@floodgate/test-servers";
import { Page, replaced } from "./page.js";
import { describeGateway } from "./suite.js";

const page = new Page("haproxy.md");
const file = "/etc/haproxy/haproxy.cfg";
const script = readFileSync(join(__dirname, "../../gateways/haproxy.lua"), "utf8");

describeGateway({
  name: "HAProxy",
  install: haproxy,
  start: ({ ask, app, deadlineMs }, onFailure) => {
    const open = page.config(file);
    const config = onFailure === "open" ? open : page.changed(file, open);
    // A name without a file belongs to the whole machine.
    const name = `abns@floodgate-${ask}-${onFailure}-${deadlineMs}`;
    const rest = {
      "127.0.0.1:8081": `127.0.0.1:${ask}`,
      "127.0.0.1:3000": `127.0.0.1:${app}`,
      "250ms": `${deadlineMs}ms`,
      "abns@floodgate": name,
    };
    return startHaproxy({
      config: ({ port, dir }) =>
        replaced(config, { "bind :80": `bind 127.0.0.1:${port}`, "/etc/haproxy/floodgate.lua": join(dir, "floodgate.lua"), ...rest }),
      files: { "floodgate.lua": replaced(script, { '"abns@floodgate"': `"${name}"` }) },
    });
  },
  passesBody: true,
  closedStatus: [503],
  connections: 4,
});
