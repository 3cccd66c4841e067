import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { type RedisCluster, type RedisServer, startCluster, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test, vi } from "vitest";
import { withRedis } from "../src/redis/connection.js";
import { floodgate } from "./command.js";
import { limits, tempFolder } from "./files.js";

const { path, write } = tempFolder();
const file = write("limits.yaml", limits);

describe("a Redis with a password", () => {
  let server: RedisServer;
  let env: NodeJS.ProcessEnv;
  const socket = path("redis.sock");
  beforeAll(async () => {
    server = await startRedis({ config: { unixsocket: socket } });
    await server.command("CONFIG", "SET", "requirepass", "s3cret");
    env = { FLOODGATE_REDIS: `redis://:s3cret@127.0.0.1:${server.port}` };
  });
  afterAll(() => server.stop());

  it.each([
    ["redis://:wr0ng@", "refuses: WRONGPASS"],
    ["redis://ann:wr0ng@", "refuses: WRONGPASS"],
    ["redis://", "refuses: it needs a password"],
  ])("never shows the password of %s", async (start, text) => {
    const { code, out, err } = await floodgate(["--debug", "push", file, "--redis", `${start}127.0.0.1:${server.port}`]);
    expect(code).toBe(2);
    expect(err).toContain(`Redis at 127.0.0.1:${server.port} ${text}`);
    expect(out + err).not.toMatch(/wr0ng|s3cret/);
  });

  it("is reached by its Unix socket, in the given database", async () => {
    const url = (rest: string) => `unix://:s3cret@${socket}${rest}`;
    expect(await floodgate(["push", file, "--redis", url("?db=3")])).toMatchObject({ code: 0, err: "" });
    expect(await floodgate(["pull", "--redis", url("?db=3")])).toMatchObject({ code: 0, out: limits });
    expect(await floodgate(["pull", "--redis", url("")])).toMatchObject({ code: 1 });
    const wrong = await floodgate(["pull", "--redis", `unix:${socket}`]);
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining(`Redis at ${socket} refuses: it needs a password.`) });
  });

  it("does not push to another database than the given one", async () => {
    const { code, err } = await floodgate(["push", file, "--redis", `${env["FLOODGATE_REDIS"]}/99`]);
    expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining("DB index is out of range") });
  });
});

test("check does not wait for a pipe", async () => {
  const pipe = path("pipe");
  execFileSync("mkfifo", [pipe]);
  expect(await floodgate(["check", pipe])).toEqual({
    code: 64,
    out: "",
    err: `floodgate: ${pipe} cannot be read: it is not a regular file. Write - for standard input.\n`,
  });
});

test("a log that cannot be opened is named, with the exit code of a missing one", async () => {
  const socket = path("log.sock");
  const server = createServer().listen(socket);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { code, err } = await floodgate(["simulate", socket, "--compare", "1/1m"]);
  expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining(`floodgate: ${socket} cannot be read: ENXIO`) });
});

describe("an unusable Redis", () => {
  it("that a variable names with an empty text is missing", async () => {
    vi.stubEnv("FLOODGATE_REDIS", "");
    onTestFinished(() => void vi.unstubAllEnvs());
    const { code, err } = await floodgate(["pull"]);
    expect({ code, err }).toMatchObject({ code: 64, err: expect.stringContaining("the address of Redis is missing") });
  });

  it.each([
    ["as one server", []],
    ["as a Cluster", ["--cluster"]],
  ])("that refuses connections exits with 2: %s", async (_, more) => {
    const { code, err } = await floodgate(["pull", "--redis", "redis://127.0.0.1:1", ...more]);
    expect({ code, err }).toEqual({
      code: 2,
      err: "floodgate: Redis at 127.0.0.1:1 refuses the connection. Nothing listens there: connect ECONNREFUSED 127.0.0.1:1\n",
    });
  });

  it("that never answers is given up after `connectMs`", async () => {
    const silent = createServer((socket) => socket.on("error", () => undefined)).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const connecting = withRedis({ redis: `redis://127.0.0.1:${port}`, rulesKey: "floodgate:rules" }, async () => "connected", 50);
    await expect(connecting).rejects.toThrow(`Redis at 127.0.0.1:${port} does not answer: no answer within 0.05 s`);
    silent.close();
  });

  it("is told its name in TLS, so that a proxy can find it", async () => {
    const names: string[] = [];
    const SNICallback = (name: string, done: (error: Error) => void): void => {
      names.push(name);
      done(new Error("no certificate"));
    };
    const proxy = createTlsServer({ SNICallback })
      .on("tlsClientError", () => undefined)
      .listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const { port } = proxy.address() as AddressInfo;
    expect((await floodgate(["pull", "--redis", `rediss://localhost:${port}`])).code).toBe(2);
    expect(names).toEqual(["localhost"]);
    proxy.close();
  });

  it.each([
    "localhost:6379",
    "http://:s3cret@127.0.0.1",
    "redis://",
    "redis://:s3cret@127.0.0.1/rules",
    "redis://:s3cret%@127.0.0.1",
    "redis://127.0.0.1?db=3",
    "redis://127.0.0.1/3?password=s3cret",
    "redis://127.0.0.1#s3cret",
    "unix://",
    "unix://:s3cret@host/run/redis.sock",
    "unix://:s3cret@/run/redis.sock?db=x",
    "unix://:s3cret@/run/redis.sock?password=s3cret",
  ])("with an invalid URL exits with 64: %s", async (redis) => {
    const { code, err } = await floodgate(["pull", "--redis", redis]);
    expect(code).toBe(64);
    expect(err).toContain("--redis redis://user:password@127.0.0.1:6379/0");
    expect(err).toContain("redis:// takes no ? and no #.");
    expect(err).not.toContain("s3cret");
  });
});

describe("a Cluster", () => {
  let cluster: RedisCluster;
  let url: string;
  beforeAll(async () => {
    cluster = await startCluster({ replicasPerMaster: 0 });
    url = `redis://127.0.0.1:${cluster.nodes[0]?.port}`;
  });
  afterAll(() => cluster.stop());

  it("push and reset reach keys on every node", async () => {
    for (const key of ["a", "b", "c"]) {
      expect(await floodgate(["push", file, "--redis", url, "--cluster", "--rules-key", key])).toMatchObject({ code: 0, err: "" });
      const target = ["--rule", "posts", "--key", key, "--rules-key", key];
      expect(await floodgate(["reset", ...target, "--redis", url, "--cluster"])).toMatchObject({ code: 0, err: "" });
    }
  });

  it("has only database 0", async () => {
    const { code, err } = await floodgate(["pull", "--redis", `${url}/3`, "--cluster"]);
    expect({ code, err }).toEqual({ code: 64, err: "floodgate: a Redis Cluster has only database 0, not 3. Remove /3 from the URL.\n" });
  });

  it("is detected if --cluster is missing", async () => {
    const ended = await Promise.all(["a", "b", "c"].map((key) => floodgate(["pull", "--redis", url, "--rules-key", key])));
    expect(ended.map(({ code }) => code)).toContain(2);
    for (const { code, err } of ended) if (code === 2) expect(err).toContain("is a node of a Cluster. Add --cluster.");
  });
});
