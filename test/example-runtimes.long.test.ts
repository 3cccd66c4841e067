import { once } from "node:events";
import { request } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "./files.js";
import { urlIn, withProgram } from "./programs.js";

// One app of Hono and one of Request and Response on every runtime: started as users start them, and tested with the same requests.

const examples = join(import.meta.dirname, "../examples");
/** The binaries come from its dependencies. */
const hono = join(examples, "hono");
const temp = temporaryFolder("example");

/** The command of each runtime. */
const runtimes: Record<string, readonly string[]> = {
  Node: [process.execPath, "node.mjs"],
  Bun: [join(hono, "node_modules/.bin/bun"), "bun.mjs"],
  Deno: [
    join(hono, "node_modules/deno/deno"),
    "run",
    "--node-modules-dir=manual",
    "--allow-read=../..",
    "--allow-env=PORT",
    "--allow-net=127.0.0.1",
    "deno.mjs",
  ],
  workerd: [process.execPath, "workerd.mjs"],
};
const elysia: Record<string, readonly string[]> = { "Elysia on Bun": [join(hono, "node_modules/.bin/bun"), "elysia.mjs"] };
const apps = [
  ...Object.entries(runtimes).map(([runtime, command]) => ["hono", runtime, command] as const),
  ...Object.entries({ ...runtimes, ...elysia }).map(([runtime, command]) => ["fetch", runtime, command] as const),
];

/** Writes only below `temp`, and turns off update checks. */
const env = { ...process.env, PORT: "0", DENO_DIR: temp, DENO_NO_UPDATE_CHECK: "1", BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0" };

interface Asked {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
  /** The loopback address to connect from. */
  readonly from?: string;
}

interface ClientResponse {
  readonly status: number | undefined;
  readonly headers: Record<string, unknown>;
  readonly body: unknown;
}

async function ask(url: string, { method = "GET", headers = {}, body, from = "127.0.0.1" }: Asked = {}): Promise<ClientResponse> {
  const sent = request(url, { method, headers, localAddress: from, agent: false });
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = await once(sent, "response");
  return { status: response.statusCode, headers: response.headers, body: await json(response) };
}

/** Runs `visit` as one client after the other, until no window of ten seconds has ended within it. */
async function inOneWindow(visit: (from: string) => Promise<void>): Promise<void> {
  const window = () => Math.floor((performance.timeOrigin + performance.now()) / 10_000);
  for (let client = 1; ; client++) {
    const began = window();
    try {
      return await visit(`127.0.0.${client}`);
    } catch (error) {
      if (window() === began) throw error;
    }
  }
}

describe.each(apps)("the example %s on %s", (example, _, command) => {
  it("gives the answers that it gives everywhere", { timeout: 60_000 }, async () => {
    await withProgram(command, /http:\/\/127\.0\.0\.1:\d+\n/, { cwd: join(examples, example), env }, async (printed) => {
      const url = urlIn(printed);
      await inOneWindow(async (from) => {
        for (const remaining of [4, 3, 2, 1, 0]) {
          const { status, headers, body } = await ask(url, { from });
          expect([status, body]).toEqual([200, { hello: "world", remaining }]);
          expect(headers).toMatchObject({
            "ratelimit-policy": '"per-ip";q=5;w=10',
            ratelimit: expect.stringMatching(new RegExp(`^"per-ip";r=${remaining};t=\\d+$`)),
          });
        }

        // Headers from a client do not change its identity.
        const forged = { "x-forwarded-for": "198.51.100.1", "cf-connecting-ip": "198.51.100.1", "x-real-ip": "198.51.100.1" };
        const limited = await ask(url, { headers: forged, from });
        expect(limited.status).toBe(429);
        expect(limited.headers).toMatchObject({
          "content-type": "application/problem+json",
          "cache-control": "no-store",
          ratelimit: expect.stringMatching(/^"per-ip";r=0;t=\d+$/),
          "retry-after": expect.stringMatching(/^[1-9]\d*$/),
        });
        expect(limited.body).toMatchObject({ status: 429, "violated-policies": ["per-ip"] });
      });
      expect((await ask(url, { from: "127.0.0.200" })).status).toBe(200);

      const login = { method: "POST", headers: { "content-type": "application/json" }, body: { user: "ada" } };
      const tries: (number | undefined)[] = [];
      for (let i = 0; i < 4; i++) tries.push((await ask(`${url}/login`, login)).status);
      expect(tries).toEqual([401, 401, 401, 429]);

      const queued = await Promise.all([ask(`${url}/slow`), ask(`${url}/slow`)]);
      expect(queued.map(({ body }) => body)).toEqual([{ done: true }, { done: true }]);
    });
  });
});
