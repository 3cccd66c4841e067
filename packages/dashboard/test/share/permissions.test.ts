import { readFileSync } from "node:fs";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Watch } from "../../src/collect/watch.js";
import { senderOf } from "../../src/share/redis.js";
import { type Reports, Share } from "../../src/share/share.js";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.stop());

const docs = readFileSync(`${__dirname}/../../../../docs/redis.md`, "utf8");
const [, keys = "", listed = ""] = /dashboard\].* needs `(~\S+)`.* and `(.*)`/.exec(docs) ?? [];

/** What a process sees of itself and of another one that has gone. */
async function seenWith(rules: readonly string[]): Promise<Reports> {
  await server.command("FLUSHALL");
  await server.command("ACL", "SETUSER", "user", "reset", "on", ">p", "-@all", "+client", "+hello", "+info", ...rules);
  const redis = new Redis({ port: server.port, username: "user", password: "p" });
  const watches = [new Watch(), new Watch()];
  onTestFinished(() => {
    redis.disconnect();
    for (const watch of watches) watch.close();
  });
  await new Promise((resolve) => redis.once("ready", resolve));
  const [own, other] = watches.map((watch) => new Share(watch, senderOf(redis))) as [Share, Share];
  for (const share of [own, other]) await share.publish(Date.now());
  const both = await own.read();
  await server.command("DEL", `{floodgate:dashboard}:2:instance:${watches[1]?.id}`);
  const alone = await own.read();
  return alone.trouble === undefined ? both : alone;
}

describe("a Redis user with the permissions that docs/redis.md lists for the dashboard", () => {
  const commands = listed.split(" ");

  it("shares all figures", async () => {
    expect(await seenWith([keys, ...commands])).toMatchObject({ trouble: undefined, reports: { length: 2 } });
  });

  // A summary that is not deleted expires.
  it.each(commands.filter((command) => command !== "+del"))(
    "but %s: the page says that it shows one process, and what to allow",
    async (command) => {
      const { trouble, reports } = await seenWith([keys, ...commands.filter((other) => other !== command)]);
      expect(reports).toHaveLength(1);
      expect(trouble).toMatch(/^Redis failed: NOPERM/);
      expect(trouble?.endsWith(`. Allow it: ACL SETUSER <user> ${keys} ${listed}. See docs/redis.md.`)).toBe(true);
    },
  );

  it("but other keys: the same", async () => {
    const { trouble } = await seenWith(["~floodgate:*", ...commands]);
    expect(trouble).toMatch(/ key.*\. Allow it: /);
  });
});
