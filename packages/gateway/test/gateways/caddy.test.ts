import { caddy, startCaddy } from "@floodgate/test-servers";
import { Page, replaced } from "./page.js";
import { describeGateway } from "./suite.js";

const page = new Page("caddy.md");

describeGateway({
  name: "Caddy",
  install: caddy,
  start: ({ ask, app, deadlineMs }, onFailure) => {
    const config = page.config(onFailure === "open" ? "/etc/caddy/Caddyfile" : "/etc/caddy/Caddyfile, short");
    const rest = { "127.0.0.1:8081": `127.0.0.1:${ask}`, "127.0.0.1:3000": `127.0.0.1:${app}`, "250ms": `${deadlineMs}ms` };
    return startCaddy({ config: ({ port }) => replaced(config, { ":80 {": `http://127.0.0.1:${port} {`, ...rest }) });
  },
  passesBody: true,
  closedStatus: [502, 504],
  connections: 4,
});
