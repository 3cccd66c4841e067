import { once } from "node:events";
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { pushRules } from "@floodgate/rules";
import { startProxy, startRedis } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { gateway, serve } from "../../src/index.js";
import { head, sendRaw } from "../ask/raw.js";
import { few, Log, startServe, temporaryFolder } from "../world.js";

const free = { listen: "127.0.0.1:0", admin: "127.0.0.1:0", drainMs: 0, closeMs: 5000, logFormat: "json" } as const;

function rulesFile(text: string): string {
  const path = join(temporaryFolder(), "limits.yaml");
  writeFileSync(path, text);
  return path;
}

async function readyz(admin: string | undefined): Promise<{ status: number; ready: boolean; reasons: string[]; notes: string[] }> {
  const answer = await fetch(`http://${admin}/readyz`);
  return { status: answer.status, ...((await answer.json()) as { ready: boolean; reasons: string[]; notes: string[] }) };
}

describe("a service does not start, and leaves nothing behind,", () => {
  it.each<[string, object, string]>([
    ["with rules of a wrong syntax", { rules: rulesText("rules: [{ name: a, limt: 1, window: 1m }]") }, "limits.yaml:1:20: "],
    [
      "with a key that the settings do not define",
      { rules: rulesText("rules: [{ name: a, key: user, limit: 1, window: 1m }]") },
      "limits.yaml:1:25: ",
    ],
    ["without the rules file", { rules: "/none/limits.yaml" }, "/none/limits.yaml: the rules cannot be read"],
    [
      "without a secret file",
      { rules: rulesText("rules: [{ name: a, limit: 1, window: 1m }]"), secretFile: "/none/secret" },
      "`secretFile`: /none/secret cannot be used: it does not exist.",
    ],
    [
      "on an address of another machine",
      { rules: rulesText("rules: [{ name: a, limit: 1, window: 1m }]"), admin: "203.0.113.1:1" },
      "`admin`: cannot listen on 203.0.113.1:1: this machine has no such address.",
    ],
    [
      "in a folder that does not exist",
      { rules: rulesText("rules: [{ name: a, limit: 1, window: 1m }]"), admin: "unix:/none/s" },
      "this user may not write to the directory of the socket, or it does not exist",
    ],
  ])("%s", async (_, settings, message) => {
    const given = Object.fromEntries(
      Object.entries(settings).map(([name, value]) => [name, typeof value === "function" ? value() : value]),
    );
    await expect(serve({ ...free, ...given }, { log: new Log() })).rejects.toThrow(message);
  });

  it("on a port that is taken", async () => {
    const taken = createTcpServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    onTestFinished(() => void taken.close());
    const admin = `127.0.0.1:${(taken.address() as AddressInfo).port}`;
    const rules = rulesText("rules: [{ name: a, limit: 1, window: 1m }]")();
    await expect(serve({ ...free, rules, admin }, { log: new Log() })).rejects.toThrow(
      `\`admin\`: cannot listen on ${admin}: another process listens there. Stop it, or choose another address.`,
    );
  });
});

/** Made when the test runs, because the folder belongs to the test. */
function rulesText(text: string): () => string {
  return () => rulesFile(text);
}

test.each([
  ["serve", {}, "Write --rls 127.0.0.1:8082"],
  ["serve", { rls: "127.0.0.1:0" }, undefined],
  ["gateway", { upstream: "http://127.0.0.1:1" }, "floodgate serve --rls 127.0.0.1:8082 answers them"],
] as const)("%s with %o warns of rules for Envoy, if Envoy cannot ask", async (command, settings, advice) => {
  const rules = rulesFile(
    "rules: [{ name: edge, match: { domain: edge }, key: ip, limit: 1, window: 1m }, { name: web, limit: 1, window: 1m }]",
  );
  const log = new Log();
  const running = await { serve, gateway }[command]({ ...free, ...settings, rules }, { log });
  await running.close();
  const warnings = log.warnings.filter((message) => message.includes("limit nothing"));
  expect(warnings).toEqual(advice === undefined ? [] : [expect.stringContaining(advice)]);
  if (advice !== undefined) expect(log.lines).toContainEqual(expect.objectContaining({ rules: ["edge"] }));
});

test("a key that the settings define is accepted in rules", async () => {
  const { running } = await startServe([few(1, { key: "user" })], { keys: { user: "header:x-user" } });
  expect(running.addresses).toHaveProperty("listen");
});

test("a bad version of the rules is refused while the service runs: it stays ready, and says so", async () => {
  const { running, log, rulesFile: path } = await startServe([few(1)], { admin: "127.0.0.1:0" });
  const { admin } = running.addresses;
  expect(await readyz(admin)).toEqual({ status: 200, ready: true, reasons: [], notes: [] });
  writeFileSync(path, '{"rules": [{"name": "a", "limt": 1}]}');
  await expect
    .poll(async () => (await readyz(admin)).notes, { timeout: 10_000 })
    .toEqual([expect.stringContaining("Did you mean `limit`?")]);
  expect((await readyz(admin)).status).toBe(200);
  expect(log.messages.join("\n")).toContain("New rules were refused. The previous rules stay in force");
  writeFileSync(path, JSON.stringify({ rules: [few(2, { key: "tenant" })] }));
  await expect
    .poll(async () => (await readyz(admin)).notes, { timeout: 10_000 })
    .toEqual([expect.stringContaining("Define your own names by flags: --key tenant=header:x-tenant.")]);
  writeFileSync(path, JSON.stringify({ rules: [few(2)] }));
  await expect.poll(async () => (await readyz(admin)).notes, { timeout: 10_000 }).toEqual([]);
});

describe("a Unix socket", () => {
  it("is replaced if a dead process has left it, and refused if a living one listens", async () => {
    const path = join(temporaryFolder(), "admin.sock");
    const dead = createTcpServer().listen(path);
    await once(dead, "listening");
    // A process that is killed leaves the file.
    const { rules } = { rules: rulesFile("rules: [{ name: a, limit: 1, window: 1m }]") };
    await expect(serve({ ...free, rules, admin: `unix:${path}` }, { log: new Log() })).rejects.toThrow("another process listens there");
    writeFileSync(`${path}.file`, "");
    await expect(serve({ ...free, rules, admin: `unix:${path}.file` }, { log: new Log() })).rejects.toThrow(
      "a file that is not a socket has this path",
    );
    await new Promise((resolve) => dead.close(resolve));
    expect(existsSync(path)).toBe(false);
    const running = await serve({ ...free, rules, admin: `unix:${path}` }, { log: new Log() });
    onTestFinished(() => running.close());
    const answer = await new Promise<number | undefined>((resolve, reject) => {
      request({ socketPath: path, path: "/healthz" }, ({ statusCode }) => resolve(statusCode))
        .on("error", reject)
        .end();
    });
    expect(answer).toBe(200);
  });
});

/** What Caddy asks. */
const asked = {
  "x-forwarded-method": "GET",
  "x-forwarded-uri": "/",
  "x-forwarded-host": "a.example",
  "x-forwarded-for": "203.0.113.7",
  "x-forwarded-proto": "http",
};

describe("with Redis", () => {
  it("is not ready while Redis is down, also at the start, and is ready again by itself", async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    await redis.kill();
    const { running, log } = await startServe([few(1000)], { admin: "127.0.0.1:0", redis: `redis://127.0.0.1:${redis.port}` });
    const { admin } = running.addresses;
    expect(await readyz(admin)).toMatchObject({ status: 503, reasons: ["Redis does not answer."] });
    await redis.start();
    await expect.poll(async () => (await readyz(admin)).status, { timeout: 20_000 }).toBe(200);
    await redis.kill();
    await expect.poll(async () => (await readyz(admin)).status, { timeout: 20_000 }).toBe(503);
    expect(log.messages.join("\n")).not.toMatch(/(Redis does not answer\n){3}/);
  });

  it("is not ready with a database number that the server does not have, and counts in no other database", async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const settings = { admin: "127.0.0.1:0", redis: `redis://127.0.0.1:${redis.port}/99` };
    const { running, log, ask } = await startServe([few(1000)], settings);
    await fetch(`${ask}/ask/caddy`, { headers: asked });
    const { admin } = running.addresses;
    expect(await readyz(admin)).toMatchObject({ status: 503, reasons: ["Redis does not answer."] });
    expect(JSON.stringify(log)).toContain("ERR DB index is out of range");
    const client = new Redis(redis.port);
    onTestFinished(() => client.disconnect());
    expect(await client.dbsize()).toBe(0);
  });

  it("leaves a connection to Redis that has fallen silent", async () => {
    const redis = await startRedis();
    const network = await startProxy(redis.port);
    onTestFinished(() => redis.stop());
    onTestFinished(() => network.stop());
    const { running } = await startServe([few(1000)], { admin: "127.0.0.1:0", redis: `redis://127.0.0.1:${network.port}` });
    const { admin } = running.addresses;
    await expect.poll(async () => (await readyz(admin)).status, { timeout: 20_000 }).toBe(200);
    network.silence();
    await expect.poll(async () => (await readyz(admin)).status, { timeout: 20_000 }).toBe(503);
    await expect.poll(async () => (await readyz(admin)).status, { timeout: 20_000 }).toBe(200);
  });

  it("is not ready while Redis answers but cannot count, and finds the new master after a failover", async () => {
    const [old, master] = [await startRedis(), await startRedis()];
    onTestFinished(() => Promise.all([old.stop(), master.stop()]).then(() => undefined));
    // The name that the settings have, which leads to the master.
    let leadsTo = old.port;
    const name = createTcpServer((socket) => {
      const server = connect(leadsTo, "127.0.0.1");
      socket.pipe(server).pipe(socket);
      socket.on("error", () => server.destroy()).on("close", () => server.destroy());
      server.on("error", () => socket.destroy());
    }).listen(0, "127.0.0.1");
    await once(name, "listening");
    onTestFinished(() => void name.close());
    const redis = `redis://127.0.0.1:${(name.address() as AddressInfo).port}`;
    const { running } = await startServe([few(1000)], { admin: "127.0.0.1:0", redis });
    const { admin } = running.addresses;
    await expect.poll(async () => (await readyz(admin)).status, { timeout: 20_000 }).toBe(200);
    const client = new Redis(old.port);
    onTestFinished(() => client.disconnect());
    const refuses = async (command: string[], undo: string[], reason: string): Promise<void> => {
      await client.call(command[0] as string, ...command.slice(1));
      const refused = [expect.stringMatching(`^Redis refuses to count: .*${reason}`)];
      await expect.poll(async () => (await readyz(admin)).reasons, { timeout: 20_000 }).toEqual(refused);
      expect((await readyz(admin)).status).toBe(503);
      await client.call(undo[0] as string, ...undo.slice(1));
    };
    await refuses(["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"], "OOM");
    await refuses(["ACL", "SETUSER", "default", "-eval", "-evalsha"], ["ACL", "SETUSER", "default", "+@all"], "NOPERM");
    leadsTo = master.port;
    await client.replicaof("127.0.0.1", `${master.port}`);
    await expect.poll(async () => (await readyz(admin)).status, { timeout: 20_000, interval: 1100 }).toBe(200);
    const found = new Redis(master.port);
    onTestFinished(() => found.disconnect());
    await expect.poll(() => found.exists("floodgate:readyz"), { timeout: 20_000 }).toBe(1);
  });

  it("with rules in Redis: starts without them, follows `onStoreError`, and is ready when they have come", async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const log = new Log();
    const url = `redis://127.0.0.1:${redis.port}`;
    const running = await serve({ ...free, redis: url, rulesKey: "limits", onStoreError: "deny" }, { log });
    onTestFinished(() => running.close());
    const { admin, listen } = running.addresses;
    const missing = [expect.stringContaining("this Redis key holds no rules")];
    await expect.poll(async () => (await readyz(admin)).reasons, { timeout: 20_000 }).toEqual(missing);
    expect((await readyz(admin)).status).toBe(503);
    expect(log.messages.join("\n")).toContain("Until they come, each request is rejected.");
    expect((await fetch(`http://${listen}/ask/caddy`, { headers: { ...asked } })).status).toBe(503);
    const client = new Redis(url);
    onTestFinished(() => client.disconnect());
    await pushRules(client, "limits", JSON.stringify({ rules: [few(1000)] }));
    await expect.poll(async () => (await readyz(admin)).status, { timeout: 20_000 }).toBe(200);
    expect((await fetch(`http://${listen}/ask/caddy`, { headers: { ...asked } })).status).toBe(204);
  });
});

test("a drain fails /readyz, lets a request in flight end, and closes the connections", async () => {
  let finish = (): void => undefined;
  const upstream = createServer(({ url }, response) => {
    if (url !== "/slow") return void response.end();
    response.write("begun ");
    finish = () => response.end("ended");
  }).listen(0, "127.0.0.1");
  await once(upstream, "listening");
  onTestFinished(() => void upstream.close());
  const rules = rulesFile("rules: [{ name: a, limit: 1000, window: 365d }]");
  const { port } = upstream.address() as AddressInfo;
  const running = await gateway({ ...free, drainMs: 300, rules, upstream: `http://127.0.0.1:${port}` }, { log: new Log() });
  const { admin, listen } = running.addresses;
  const answer = await fetch(`http://${listen}/slow`);
  let isClosed = false;
  const closed = running.close().then(() => {
    isClosed = true;
  });
  expect(await readyz(admin)).toMatchObject({ status: 503, reasons: ["It is draining."] });
  await expect
    .poll(
      () =>
        fetch(`http://${listen}/`).then(
          ({ status }) => status,
          () => "refused",
        ),
      { timeout: 10_000 },
    )
    .toBe("refused");
  expect(isClosed).toBe(false);
  finish();
  expect(await answer.text()).toBe("begun ended");
  await closed;
  expect(await running.close()).toBe(undefined);
});

describe("the admin server", () => {
  it("shows metrics of the limits and of the process, the dashboard, and that it is alive", async () => {
    const { running } = await startServe([few(1000)], { admin: "127.0.0.1:0" });
    const admin = `http://${running.addresses["admin"]}`;
    expect(await (await fetch(`${admin}/healthz`)).json()).toEqual({ alive: true });
    const metrics = await (await fetch(`${admin}/metrics`)).text();
    expect(metrics).toMatch(/^process_cpu_seconds_total \d/m);
    expect(metrics).toMatch(/^# TYPE floodgate_rate_limiting_requests_total counter/m);
    expect((await fetch(admin)).url).toBe(`${admin}/dashboard`);
    expect(await (await fetch(`${admin}/dashboard`)).text()).toContain("<title>");
    expect((await fetch(`${admin}/none`)).status).toBe(404);
  });

  // As HAProxy's `option httpchk GET /readyz` sends it.
  it("answers probes of HTTP/1.0, which name no host, and shows them no dashboard", async () => {
    const { running } = await startServe([few(1000)], { admin: "127.0.0.1:0" });
    const probe = async (line: string) => (await sendRaw(`http://${running.addresses["admin"]}`, head(line)))[0]?.status;
    expect(await Promise.all(["GET /healthz HTTP/1.0", "GET /readyz HTTP/1.0", "HEAD /readyz HTTP/1.0"].map(probe))).toEqual([
      200, 200, 200,
    ]);
    expect(await probe("GET /dashboard HTTP/1.0")).toBe(404);
    expect(await probe("GET /healthz HTTP/1.1")).toBe(400);
  });

  it("asks for the token if there is one", async () => {
    const adminTokenFile = join(temporaryFolder(), "token");
    writeFileSync(adminTokenFile, "hunter2\n");
    chmodSync(adminTokenFile, 0o600);
    const { running } = await startServe([few(1000)], { admin: "127.0.0.1:0", adminTokenFile });
    const page = (authorization?: string, path = "/dashboard") =>
      fetch(`http://${running.addresses["admin"]}${path}`, authorization === undefined ? {} : { headers: { authorization } });
    const basic = (pair: string) => `Basic ${Buffer.from(pair).toString("base64")}`;
    for (const wrong of [undefined, "", "Basic", basic("hunter2"), basic("a:hunter"), basic("a:hunter2 "), "Bearer", "Bearer x"]) {
      const answer = await page(wrong);
      expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, 'Basic realm="Floodgate", charset="UTF-8"']);
      expect((await page(wrong, "/dashboard/api/overview")).status).toBe(401);
    }
    for (const right of [basic("a:hunter2"), basic(":hunter2"), "Bearer hunter2"]) expect((await page(right)).status).toBe(200);
  });

  it("shows no dashboard and no metrics if the settings say so", async () => {
    const { running } = await startServe([few(1000)], { admin: "127.0.0.1:0", dashboard: false, metrics: false });
    for (const path of ["/", "/dashboard", "/metrics"])
      expect((await fetch(`http://${running.addresses["admin"]}${path}`)).status).toBe(404);
  });
});
