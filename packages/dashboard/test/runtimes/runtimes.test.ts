import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, expect, it } from "vitest";
import type { LiveFigures } from "../../src/contract.js";
import { ask, askRaw, openEvents } from "../adapters/http.js";

// Bun and Deno do not tell an app the HTTP version. What keeps proxies out there? And what does a limit in Hono do when they lose an address?

const modules = join(__dirname, "../../node_modules");
const temp = mkdtempSync(join(tmpdir(), "floodgate-dashboard-"));
afterAll(() => rmSync(temp, { recursive: true, force: true }));

const deno = [join(modules, "deno/deno"), "run", "--node-modules-dir=manual", "--allow-read=../../../..", "--allow-net=127.0.0.1"];
/** As browsers do. */
const keepAlive = { headers: { Connection: "keep-alive" } };
/** Writes only below `temp`, and turns off update checks. */
const env = { ...process.env, DENO_DIR: temp, DENO_NO_UPDATE_CHECK: "1", BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0" };

/** Starts the app, uses it, and expects the codes of exactly these warnings. Deno writes notices of its own beside them. */
async function withApp(
  [command = "", ...args]: readonly string[],
  warnings: readonly string[],
  use: (port: number) => Promise<void>,
): Promise<void> {
  expect(existsSync(command), command).toBe(true);
  const child = spawn(command, args, { cwd: __dirname, env, stdio: ["ignore", "pipe", "pipe"] });
  const written = text(child.stderr);
  const exited = once(child, "exit");
  try {
    const [line] = await Promise.race([once(child.stdout, "data"), exited.then(async () => [await written])]);
    const [, port] = /:(\d+)\n/.exec(String(line)) ?? [];
    expect(port, String(line)).toBeDefined();
    await use(Number(port));
  } finally {
    child.kill();
    await exited;
  }
  expect([...(await written).matchAll(/^\[floodgate\] (\w+)/gm)].map(([, code]) => code)).toEqual(warnings);
}

const runtimes: [name: string, command: string[]][] = [
  ["Bun", [join(modules, ".bin/bun")]],
  ["Deno", [...deno, "--allow-env=NODE_ENV"]],
];

it.each(runtimes)("%s: no request is served uncounted because its client has reset the connection", async (_, command) => {
  await withApp([...command, "resets.mjs"], [], async (port) => {
    for (let i = 0; i < 100; i++) {
      const socket = connect(port, "127.0.0.1");
      socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", () => socket.resetAndDestroy());
      await once(socket, "close");
    }
    const { served, counted } = JSON.parse((await ask(port, "/served", keepAlive)).text);
    expect(served).toBeLessThanOrEqual(counted);
  });
});

it.each(runtimes)("%s: the dashboard answers a browser on this machine, live, and no proxy", async (_, command) => {
  await withApp([...command, "app.mjs"], ["FLOODGATE_DASHBOARD_CLOSED", "FLOODGATE_MISSING_PROXY_SETTING"], async (port) => {
    for (const path of ["/f", "/f/", "/f/data/overview"]) expect((await ask(port, path, keepAlive)).status, path).toBe(200);
    for (const headers of [{ Host: "evil.example" }, { "X-Forwarded-For": "192.0.2.1" }, { Origin: "https://evil.example" }]) {
      expect((await ask(port, "/f/", { headers: { ...keepAlive.headers, ...headers } })).status).toBe(404);
    }
    for (const more of [["Connection: close"], ["Connection: Close"], []]) {
      expect(await askRaw(port, ["GET /f/ HTTP/1.0", "Host: localhost", ...more])).toContain(" 404 ");
      expect(await askRaw(port, ["GET /f/ HTTP/1.1", "Host: localhost", ...more])).toContain(" 404 ");
    }

    const headers = { "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin", ...keepAlive.headers };
    const stream = await openEvents(port, "/f/data/live", keepAlive.headers);
    for (let i = 0; i < 3; i++) await ask(port, "/");
    let seen = 0;
    while (seen < 3) {
      const { overview } = (await stream.next()) as LiveFigures;
      const { allowed = 0, limited = 0 } = overview.totals.find(({ rule }) => rule === "web")?.counts ?? {};
      seen = allowed + limited;
    }
    stream.close();
    const key = await ask(port, "/f/data/key", { method: "POST", headers, body: '{"key":"127.0.0.1"}' });
    expect(JSON.parse(key.text)).toMatchObject({ states: [{ rule: "web", states: [{ state: { kind: "windows" } }] }] });
  });
});

it("Deno without permission to read NODE_ENV: the dashboard stays closed", async () => {
  await withApp([...deno, "app.mjs"], ["FLOODGATE_DASHBOARD_CLOSED"], async (port) => {
    expect((await ask(port, "/f/", keepAlive)).status).toBe(404);
    expect((await ask(port, "/")).text).toBe("hello");
  });
});
