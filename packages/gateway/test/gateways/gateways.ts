import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { program, startApache, startCaddy, startHaproxy, startNginx } from "@floodgate/test-servers";
import { Page, replaced } from "./page.js";
import type { GatewayUnderTest, Neighbours } from "./stage.js";

const scripts = join(__dirname, "../../gateways");
export const apacheScript: string = readFileSync(join(scripts, "apache.lua"), "utf8");
const haproxyScript = readFileSync(join(scripts, "haproxy.lua"), "utf8");

/** Each gateway is started with the config of its page. */
export const apachePage: Page = new Page("apache.md");
const caddyPage = new Page("caddy.md");
const haproxyPage = new Page("haproxy.md");
const nginxPage = new Page("nginx.md");

const addresses = ({ ask, app, deadlineMs }: Neighbours): Record<string, string> => ({
  "127.0.0.1:8081": `127.0.0.1:${ask}`,
  "127.0.0.1:3000": `127.0.0.1:${app}`,
  "250ms": `${deadlineMs}ms`,
});

/** `"2.6.12"`, out of what a program says about itself. */
function version(path: string, flag: string): string {
  const said = execFileSync("sh", ["-c", `"$0" ${flag} 2>&1`, path], { encoding: "utf8" });
  return /\d+\.\d+(?:\.\d+)?/.exec(said)?.[0] ?? said;
}

const nginxFile = "/etc/nginx/conf.d/app.conf";
const haproxyFile = "/etc/haproxy/haproxy.cfg";

export const apacheScriptFile = "/etc/apache2/floodgate.lua";

export const gateways: readonly GatewayUnderTest[] = [
  {
    name: "nginx",
    version: () => version(program("nginx"), "-v"),
    start: (neighbours, onFailure, raised) => {
      const open = nginxPage.config(nginxFile);
      const config = onFailure === "open" ? open : nginxPage.changed(nginxFile, open);
      const more = `client_max_body_size 0;${raised ? " large_client_header_buffers 8 256k;" : ""}`;
      return startNginx({
        config: ({ port }) => replaced(config, { "listen 80;": `listen 127.0.0.1:${port}; ${more}`, ...addresses(neighbours) }),
      });
    },
    passesBody: false,
    closedStatus: [503],
    connections: 4,
  },
  {
    name: "Caddy",
    version: () => version(program("caddy"), "version"),
    start: (neighbours, onFailure, raised) => {
      const config = caddyPage.config(onFailure === "open" ? "/etc/caddy/Caddyfile" : "/etc/caddy/Caddyfile, short");
      return startCaddy({
        config: ({ port }) =>
          replaced(config, {
            ":80 {": `http://:${port} {\n\tbind 127.0.0.1`,
            "max_header_size 32KB": `max_header_size ${raised ? 256 : 32}KB`,
            ...addresses(neighbours),
          }),
      });
    },
    passesBody: true,
    closedStatus: [502, 504],
    connections: 4,
  },
  {
    name: "HAProxy",
    version: () => version(program("haproxy"), "-v"),
    start: (neighbours, onFailure, raised) => {
      const open = haproxyPage.config(haproxyFile);
      const config = onFailure === "open" ? open : haproxyPage.changed(haproxyFile, open);
      // A name without a file belongs to the whole machine.
      const name = `abns@floodgate-${neighbours.ask}-${onFailure}-${neighbours.deadlineMs}-${raised}`;
      const limits = raised ? "\n    tune.bufsize 131072\n    tune.http.maxhdr 2000" : "";
      return startHaproxy({
        config: ({ port, dir }) =>
          replaced(config, {
            "bind :80": `bind 127.0.0.1:${port}`,
            "/etc/haproxy/floodgate.lua": join(dir, "floodgate.lua") + limits,
            "abns@floodgate": name,
            ...addresses(neighbours),
          }),
        files: { "floodgate.lua": replaced(haproxyScript, { '"abns@floodgate"': `"${name}"` }) },
      });
    },
    passesBody: true,
    closedStatus: [503],
    connections: 4,
  },
  {
    name: "Apache",
    version: () => {
      program("luasocket");
      return version(program("apache2"), "-v");
    },
    start: ({ ask, app, deadlineMs }, onFailure, raised) => {
      const script = onFailure === "open" ? apacheScript : apachePage.changed(apacheScriptFile, apacheScript);
      const limits = raised ? "LimitRequestLine 262144\nLimitRequestFieldSize 262144\nLimitRequestFields 0\n" : "";
      return startApache({
        modules: ["proxy", "proxy_http", "lua"],
        config: ({ port, dir }) =>
          limits +
          replaced(apachePage.config("/etc/apache2/sites-available/app.conf"), {
            "*:80": `*:${port}`,
            [apacheScriptFile]: join(dir, "floodgate.lua"),
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
  },
];
