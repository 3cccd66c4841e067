import { join } from "node:path";
import { expect, test } from "vitest";
import { urlIn, withProgram } from "./programs.js";

// The clock stands still, so that no window ends between the requests.
const heldClock = new URL("held-clock.mjs", import.meta.url).href;
const server = join(import.meta.dirname, "../examples/koa/server.mjs");

test("the Koa example limits logins, slow work, and everything else", { timeout: 30_000 }, async () => {
  const env = { ...process.env, PORT: "0" };
  await withProgram([process.execPath, "--import", heldClock, server], /\n$/, { env }, async (printed) => {
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
