import { nginx, startNginx } from "@floodgate/test-servers";
import { Page, replaced } from "./page.js";
import { describeGateway } from "./suite.js";

const page = new Page("nginx.md");
const file = "/etc/nginx/conf.d/app.conf";

describeGateway({
  name: "nginx",
  install: nginx,
  start: ({ ask, app, deadlineMs }, onFailure) => {
    const open = page.config(file);
    const config = onFailure === "open" ? open : page.changed(file, open);
    const rest = { "127.0.0.1:8081": `127.0.0.1:${ask}`, "127.0.0.1:3000": `127.0.0.1:${app}`, "250ms": `${deadlineMs}ms` };
    return startNginx({
      config: ({ port }) => replaced(config, { "listen 80;": `listen 127.0.0.1:${port}; client_max_body_size 0;`, ...rest }),
    });
  },
  passesBody: false,
  closedStatus: [503],
  connections: 4,
});
