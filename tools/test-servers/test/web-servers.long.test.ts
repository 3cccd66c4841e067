import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../test/files.js";
import { listen } from "../../../test/listen.js";
import { type ServerPlace, startApache, startCaddy, startHaproxy, startNginx, type WebServer } from "../src/index.js";
import { until } from "../src/until.js";

/** Each proxies to the app. */
const kinds = [
  {
    name: "nginx",
    start: startNginx,
    config: ({ port }: ServerPlace, app: number) =>
      `server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${app}; } }`,
    broken: "server { listn 80; }",
    complaint: 'unknown directive "listn"',
  },
  {
    name: "Caddy",
    start: startCaddy,
    config: ({ port }: ServerPlace, app: number) => `http://127.0.0.1:${port} {\n  reverse_proxy 127.0.0.1:${app}\n}`,
    broken: "http://127.0.0.1:1 {\n  revers_proxy\n}",
    complaint: "revers_proxy",
  },
  {
    name: "HAProxy",
    start: startHaproxy,
    config: ({ port }: ServerPlace, app: number) =>
      `defaults\n mode http\n timeout client 5s\n timeout connect 5s\n timeout server 5s\n
      listen web\n bind 127.0.0.1:${port}\n server app 127.0.0.1:${app}\n`,
    broken: "listn web\n",
    complaint: "unknown keyword 'listn'",
  },
  {
    name: "Apache",
    start: (options: Parameters<typeof startApache>[0]) => startApache({ modules: ["proxy", "proxy_http"], ...options }),
    config: ({ port }: ServerPlace, app: number) =>
      `<VirtualHost *:${port}>\nAllowEncodedSlashes NoDecode\nProxyPass / http://127.0.0.1:${app}/ nocanon\nErrorLog /dev/stderr\n</VirtualHost>`,
    broken: "Listn 80",
    complaint: "Invalid command 'Listn'",
  },
];

describe("web servers", () => {
  const dir = temporaryFolder("web-servers-test");
  let app: Server;
  let appPort: number;
  beforeAll(async () => {
    app = createServer((req, res) => res.end(`${req.method} ${req.url}`));
    appPort = await listen(app);
  });
  afterAll(() => {
    app.closeAllConnections();
    app.close();
  });
  const answers = (url: string): Promise<boolean> => fetch(url).then(Boolean, () => false);

  describe.each(kinds)("$name", ({ start, config, broken, complaint }) => {
    it("proxies, and is gone with its folder after stop", async () => {
      const server: WebServer = await start({ config: (place) => config(place, appPort), files: { "script.txt": "text" } });
      const response = await fetch(`${server.url}/a%2Fb?c`);
      expect([response.status, await response.text()]).toEqual([200, "GET /a%2Fb?c"]);
      expect(existsSync(join(server.dir, "script.txt"))).toBe(true);
      await server.stop();
      expect(existsSync(server.dir)).toBe(false);
      expect(await answers(server.url)).toBe(false);
    });

    it("reports its log if it cannot start", async () => {
      await expect(start({ config: () => broken })).rejects.toThrow(complaint);
    });
  });

  it.each(["nginx", "apache", "prometheus"])("%s ends with its workers when the process that started it dies", async (name) => {
    // What it leaves there is removed with the folder.
    const env = { ...process.env, TMPDIR: dir };
    const owner = fork(join(__dirname, "owner.mjs"), [name], { env, execArgv: [], stdio: ["ignore", "ignore", "ignore", "ipc"] });
    const [port] = await once(owner, "message");
    const url = `http://127.0.0.1:${port}`;
    expect(await answers(url)).toBe(true);
    owner.kill("SIGKILL");
    await until("it has ended", async () => !(await answers(url)));
  });
});
