import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { expectAllStopped } from "./programs.js";

const run = promisify(execFile);
const demo = join(import.meta.dirname, "../examples/rules/demo.mjs");

test("two processes follow a limit that is changed in Redis, a mistake changes nothing, and all is stopped in the end", {
  timeout: 60_000,
}, async () => {
  // On a busy machine a second may pass between two posts.
  const { stdout: printed } = await run(process.execPath, [demo, "--window", "1d"]);
  const answers = [...printed.matchAll(/process \d+ {2}(200|429) /g)].map(([, status]) => Number(status));
  expect(answers).toEqual([200, 429, 429, 200, 200, 200, 200, 200, 429, 200, 200, 200, 429]);
  const followed = [...printed.matchAll(/process (\d+) follows version 2 after \d+ ms/g)].map(([, pid]) => pid);
  expect(new Set(followed).size).toBe(2);
  expect(printed).toMatch(/rules\[1\]\.policy has no option `windw`\. Did you mean `window`\?/);

  await expectAllStopped(printed, 3);
});

test("where there is no Redis at the URL it was given, the example says so, in words and without a stack", async () => {
  const env = { ...process.env, REDIS_URL: "redis://127.0.0.1:1" };
  const { code, stderr } = await run(process.execPath, [demo], { env }).catch((error) => error);
  expect(code).toBe(1);
  expect(stderr).toContain("say where one is with REDIS_URL");
  expect(stderr).not.toMatch(/^\s+at /m);
});
