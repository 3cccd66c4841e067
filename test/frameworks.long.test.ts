import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { sparePort, startRedis } from "../tools/test-servers/src/index.js";
import { temporaryFolder } from "./files.js";
import { install, pack, root, run } from "./packed.js";
import { takesConnections } from "./programs.js";

// Apps of frameworks with @floodgate/fetch or @floodgate/node, installed, built and started as their users do: the newest versions that run on Node 20. That of
// Next.js counts in Redis, and is bundled.

const temp = temporaryFolder("frameworks");
let tarballs: Record<string, string>;

beforeAll(async () => {
  tarballs = await pack(temp, ["core", "store-memory", "store-redis", "fetch", "node"]);
}, 180_000);

interface App {
  /** The modules that build and start it, with their arguments. */
  readonly build: readonly string[];
  readonly start: readonly string[];
  /** Below the address. Each has a limit of its own. */
  readonly paths?: readonly string[];
  /** A page that fetches from the app itself, and tells the status of that. The client pays for the page alone. */
  readonly page?: string;
}

const apps: Record<string, App> = {
  next: {
    build: ["node_modules/next/dist/bin/next", "build"],
    start: ["node_modules/next/dist/bin/next", "start", "--hostname", "127.0.0.1"],
    paths: ["/api/hello", "/api/edge"],
  },
  sveltekit: { build: ["node_modules/vite/bin/vite.js", "build"], start: ["build/index.js"], page: "/page" },
  astro: { build: ["node_modules/astro/astro.js", "build"], start: ["dist/server/entry.mjs"] },
  nitro: { build: ["node_modules/nitro/dist/cli/index.mjs", "build"], start: [".output/server/index.mjs"], page: "/page" },
  nitropack: { build: ["node_modules/nitropack/dist/cli/index.mjs", "build"], start: [".output/server/index.mjs"], page: "/page" },
  "react-router": {
    build: ["node_modules/@react-router/dev/bin.js", "build"],
    start: ["node_modules/@react-router/serve/bin.js", "build/server/index.js"],
  },
};

const env = { NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1", ASTRO_TELEMETRY_DISABLED: "1" } as const;

describe.each(Object.entries(apps))("an app of %s", (name, { build, start, paths = ["/"], page }) => {
  it("limits each client, and its handler finds the decision", { timeout: 600_000 }, async () => {
    const cwd = join(temp, name);
    cpSync(join(root, "test/frameworks", name), cwd, { recursive: true });
    const manifest = JSON.parse(readFileSync(join(cwd, "package.json"), "utf8"));
    const adapter = name === "nitropack" ? "@floodgate/node" : "@floodgate/fetch";
    const used = {
      [adapter]: tarballs[adapter],
      ...(name === "next" && { "@floodgate/store-redis": tarballs["@floodgate/store-redis"] }),
    };
    const dependencies = { ...manifest.dependencies, ...used };
    writeFileSync(join(cwd, "package.json"), JSON.stringify({ ...manifest, dependencies, overrides: tarballs }));
    await install(cwd, "--include=dev");
    await run(process.execPath, build, cwd, env);
    const PORT = `${await sparePort()}`;
    const redis = name === "next" ? await startRedis() : undefined;
    const started = { ...process.env, ...env, HOST: "127.0.0.1", PORT, REDIS_PORT: String(redis?.port) };
    const child = spawn(process.execPath, [...start], { cwd, env: started, stdio: "ignore" });
    try {
      await expect.poll(() => takesConnections(Number(PORT)), { timeout: 60_000, interval: 200 }).toBe(true);
      for (const path of paths) {
        const seen: unknown[] = [];
        for (let i = 0; i < 3; i++) {
          // A client may forge all but what the proxy in front appends. Apps without one count the socket's address.
          const headers = { "x-forwarded-for": `203.0.113.${i}, 198.51.100.1` };
          const response = await fetch(`http://127.0.0.1:${PORT}${(i === 0 && page) || path}`, { headers });
          const { remaining, own = 200 } = (await response.json()) as { remaining?: number; own?: number };
          expect(own).toBe(200);
          seen.push([response.status, response.headers.has("ratelimit"), response.headers.has("retry-after"), remaining]);
        }
        expect(seen, path).toEqual([
          [200, true, false, 1],
          [200, true, false, 0],
          [429, true, true, undefined],
        ]);
      }
    } finally {
      child.kill();
      await once(child, "exit");
      await redis?.stop();
    }
  });
});
