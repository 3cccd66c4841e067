import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { expectAllStopped } from "./stopped.js";

const demo = join(import.meta.dirname, "../examples/rules/demo.mjs");

test("two processes follow a limit that is changed in Redis, a mistake changes nothing, and all is stopped in the end", {
  timeout: 60_000,
}, async () => {
  // On a busy machine a second may pass between two posts.
  const child = spawn(process.execPath, [demo, "--window", "1d"], { stdio: ["ignore", "pipe", "inherit"] });
  const closed = once(child, "close");
  let printed = "";
  for await (const chunk of child.stdout) printed += chunk;
  await closed;
  expect(child.exitCode).toBe(0);

  const answers = [...printed.matchAll(/process \d+ {2}(200|429) /g)].map(([, status]) => Number(status));
  expect(answers).toEqual([200, 429, 429, 200, 200, 200, 200, 200, 429, 200, 200, 200, 429]);
  const followed = [...printed.matchAll(/process (\d+) follows version 2 after \d+ ms/g)].map(([, pid]) => pid);
  expect(new Set(followed).size).toBe(2);
  expect(printed).toMatch(/rules\[1\]\.policy has no option `windw`\. Did you mean `window`\?/);

  await expectAllStopped(printed, 3);
});

test("where there is no Redis at the URL it was given, the example says so, in words and without a stack", async () => {
  const env = { ...process.env, REDIS_URL: "redis://127.0.0.1:1" };
  const child = spawn(process.execPath, [demo], { stdio: ["ignore", "ignore", "pipe"], env });
  const closed = once(child, "close");
  let said = "";
  for await (const chunk of child.stderr) said += chunk;
  await closed;
  expect(child.exitCode).toBe(1);
  expect(said).toContain("say where one is with REDIS_URL");
  expect(said).not.toMatch(/^\s+at /m);
});
