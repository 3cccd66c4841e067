import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../test/files.js";
import { availableServers, type RedisOptions, type RedisServer, startRedis } from "../src/index.js";
import { until } from "../src/until.js";

const started: RedisServer[] = [];

async function start(options?: RedisOptions): Promise<RedisServer> {
  const server = await startRedis(options);
  started.push(server);
  return server;
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()));
});

async function answers(port: number): Promise<boolean> {
  const redis = new Redis({ port, retryStrategy: null }).on("error", () => undefined);
  const answer = await redis.ping().catch(() => undefined);
  redis.disconnect();
  return answer === "PONG";
}

describe("a server", async () => {
  describe.each(availableServers())("of $name", ({ name, binary }) => {
    it("is the requested program", async () => {
      const server = await start({ binary });
      expect((await server.info("server"))["server_name"] === "valkey").toBe(name === "Valkey");
    });

    it("answers after it was started, and is gone after it was stopped", async () => {
      const server = await start({ binary });
      expect(await server.command("PING")).toBe("PONG");
      await server.stop();
      expect(await answers(server.port)).toBe(false);
      await expect(server.command("PING")).rejects.toThrow(`port ${server.port}`);
    });

    it("uses its config and stores nothing on disk", async () => {
      const server = await start({ binary, config: { maxmemory: "2mb", "rename-command": ["FLUSHDB one", "FLUSHALL two"] } });
      expect(await server.command("CONFIG", "GET", "maxmemory")).toEqual(["maxmemory", String(2 * 1024 * 1024)]);
      expect(await server.command("one")).toBe("OK");
      expect(await server.command("two")).toBe("OK");
      expect(await server.command("CONFIG", "GET", "save")).toEqual(["save", ""]);
    });

    it("reports its log if it cannot start", async () => {
      await expect(start({ binary, config: { maxmemory: "plenty" } })).rejects.toThrow("maxmemory plenty");
    });

    it("comes back empty on the same port after a crash", async () => {
      const server = await start({ binary });
      const { pid, port } = server;
      await server.command("SET", "key", "value");
      await (await start({ binary, replicaOf: server })).stop();
      await server.kill();
      expect(server.running).toBe(false);
      await server.restart();
      expect(server.pid).not.toBe(pid);
      expect(server.port).toBe(port);
      expect(await server.command("DBSIZE")).toBe(0);
    });

    it("is silent while it is paused, and answers afterwards", async () => {
      const server = await start({ binary });
      server.pause();
      let answered = false;
      const answer = server.command("PING").then((reply) => {
        answered = true;
        return reply;
      });
      // When another server has answered, this one would have answered too.
      await (await start({ binary })).command("PING");
      expect(answered).toBe(false);
      expect(server.running).toBe(false);
      server.resume();
      expect(await answer).toBe("PONG");
    });

    it("is in sync when it was started as a replica", async () => {
      const master = await start({ binary });
      await master.command("SET", "key", "value");
      const replica = await start({ binary, replicaOf: master });
      expect(await replica.command("GET", "key")).toBe("value");
      await expect(replica.command("SET", "key", "other")).rejects.toThrow("READONLY");
      await master.command("SET", "key", "other");
      expect(await master.command("WAIT", 1, 0)).toBe(1);
      expect(await replica.command("GET", "key")).toBe("other");
    });

    it("counts its commands", async () => {
      const server = await start({ binary });
      await server.command("SET", "key", 1);
      await server.command("CONFIG", "GET", "port");
      const counts = await server.info("commandstats");
      expect(counts["cmdstat_set"]).toMatch(/^calls=1,/);
      expect(counts["cmdstat_config|get"]).toMatch(/^calls=1,/);
    });

    it("reports its commands to a monitor, including those of scripts", async () => {
      const server = await start({ binary });
      await server.command("SET", "before", 1);
      const monitor = await server.monitor();
      await server.command("EVAL", "return redis.call('INCR', KEYS[1])", 1, "key");
      const lines = await monitor.lines();
      monitor.stop();
      expect(lines).toHaveLength(2);
      expect(lines[0]).toContain('"EVAL"');
      expect(lines[1]).toMatch(/ lua\] "INCR" "key"$/i);
    });
  });
});

describe("a server that is not stopped", () => {
  const dir = temporaryFolder("owner");

  async function owner(): Promise<{ child: ChildProcess; port: number }> {
    const env = { ...process.env, TMPDIR: dir };
    const child = fork(join(__dirname, "owner.mjs"), { env, execArgv: [], stdio: ["ignore", "ignore", "ignore", "ipc"] });
    const [port] = await once(child, "message");
    expect(await answers(port)).toBe(true);
    return { child, port };
  }

  it.each(["SIGTERM", "SIGKILL"] as const)("ends with the process that started it (%s)", async (signal) => {
    const { child, port } = await owner();
    child.kill(signal);
    await until("the server has ended", async () => !(await answers(port)));
  });

  it("ends when an exception ends that process, and leaves no files", async () => {
    const before = readdirSync(dir);
    const { child, port } = await owner();
    const exited = once(child, "exit");
    child.send("fail");
    await exited;
    await until("the server has ended", async () => !(await answers(port)));
    expect(readdirSync(dir)).toEqual(before);
  });
});
