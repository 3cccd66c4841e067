import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { urlIn, withProgram } from "./programs.js";

// The clock stands still, so that no window ends between the requests.
const heldClock = new URL("held-clock.mjs", import.meta.url).href;
const demo = join(import.meta.dirname, "../examples/express/demo.mjs");
const koa = join(import.meta.dirname, "../examples/koa/server.mjs");

/** Starts the demo on a port, waits for its last line, passes its output, and stops it. */
async function withDemo(port: number, use: (printed: string, url: string) => Promise<void>): Promise<void> {
  const command = [process.execPath, "--import", heldClock, demo];
  const env = { ...process.env, PORT: String(port) };
  await withProgram(command, /Ctrl-C stops it/, { env }, (printed) => use(printed, urlIn(printed)));
}

test("the demo shows a burst turn into 429, and goes on serving", { timeout: 30_000 }, async () => {
  await withDemo(0, async (printed, url) => {
    expect(printed.match(/ 200 OK$/gm)).toHaveLength(5);
    expect(printed.match(/ 429 Too Many Requests$/gm)).toHaveLength(2);
    expect(printed).toMatch(/RateLimit-Policy: "per-ip";q=5;w=10\n {3}RateLimit: "per-ip";r=0;t=\d+\n {3}Retry-After: \d+/);
    const login = { method: "POST", headers: { "content-type": "application/json" }, body: '{"user":"ada"}' };
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await fetch(`${url}/login`, login)).status);
    expect(statuses).toEqual([401, 401, 401, 429]);
    for (const user of ['{"toString":1}', `${"[".repeat(20_000)}${"]".repeat(20_000)}`]) {
      expect((await fetch(`${url}/login`, { ...login, body: `{"user":${user}}` })).status).toBe(400);
    }
  });
});

test("the demo takes a spare port if its own is taken", { timeout: 30_000 }, async () => {
  const other = createServer().listen(0);
  await new Promise((resolve) => other.once("listening", resolve));
  const { port } = other.address() as { port: number };
  try {
    await withDemo(port, async (_, url) => {
      expect(url).not.toContain(`:${port}`);
      expect((await fetch(`${url}/login`, { method: "POST" })).status).toBe(400);
    });
  } finally {
    other.close();
  }
});

test("the Koa example limits logins, slow work, and everything else", { timeout: 30_000 }, async () => {
  const env = { ...process.env, PORT: "0" };
  await withProgram([process.execPath, "--import", heldClock, koa], /\n$/, { env }, async (printed) => {
    const url = urlIn(printed);
    const login = async (password: string, user: unknown = "ada"): Promise<number> => {
      const body = JSON.stringify({ user, password });
      const { status } = await fetch(`${url}/login`, { method: "POST", headers: { "content-type": "application/json" }, body });
      return status;
    };
    const statuses = [];
    for (const password of ["1234", "open sesame", "qwerty", "letmein", "open sesame"]) statuses.push(await login(password));
    expect(statuses).toEqual([401, 200, 401, 401, 429]);
    expect(await login("1234", { toString: 1 })).toBe(400);

    const slow = await Promise.all([fetch(`${url}/slow`), fetch(`${url}/slow`)]);
    expect(await Promise.all(slow.map((response) => response.json()))).toEqual([{ done: true }, { done: true }]);

    const answers: Response[] = [];
    for (let i = 0; i < 6; i++) answers.push(await fetch(url));
    const limited = answers.pop() as Response;
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(await answers[0]?.json()).toEqual({ hello: "world", remaining: 4 });
    expect([limited.status, limited.headers.get("content-type")]).toEqual([429, "application/problem+json"]);
    expect(limited.headers.get("ratelimit-policy")).toBe('"per-ip";q=5;w=10');
    expect(limited.headers.get("retry-after")).toMatch(/^\d+$/);
    expect(await limited.json()).toMatchObject({ status: 429, "violated-policies": ["per-ip"] });
  });
});
