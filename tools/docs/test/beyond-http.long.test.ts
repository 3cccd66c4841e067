import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createNodeServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { documentOf, repository } from "@floodgate/docs";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { createTRPCClient, httpLink, TRPCClientError } from "@trpc/client";
import { Queue, QueueEvents } from "bullmq";
import { io as connect, type Socket } from "socket.io-client";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { listen } from "../../../test/listen.js";
import { modulesOf } from "./code.js";

// Runs the code of docs/beyond-http.md with the real libraries.

const { modules } = modulesOf(documentOf("docs/beyond-http.md"));
const folder = join(repository, "tools/docs/dist/beyond-http");
/** The copy of graphql that Node finds, and so the other libraries. Vitest would find another one. */
const graphql = JSON.stringify(createRequire(import.meta.url).resolve("graphql"));
const start = Date.UTC(2030, 0, 1);

let redis: RedisServer;

/** The modules of the page, as its test uses them. */
// biome-ignore lint/suspicious/noExplicitAny: the page is type-checked elsewhere
type Exports = Record<string, any>;

/** Loads a block by the name of its file. */
async function load(file: string): Promise<Exports> {
  const module = modules.find(({ block }) => block.code.startsWith(`// ${file}\n`));
  return await import(join(folder, module?.name ?? file));
}

beforeAll(async () => {
  redis = await startRedis();
  process.env["REDIS_URL"] = `redis://127.0.0.1:${redis.port}`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const { name, code } of modules) writeFileSync(join(folder, name), code.replaceAll('"graphql"', graphql));
  vi.useFakeTimers({ toFake: ["Date"], now: start });
});

afterAll(async () => {
  vi.useRealTimers();
  await redis.stop();
});

const oneWindowOn = () => vi.setSystemTime(Date.now() + 120_000);

describe("the code of the page", () => {
  it("tRPC: rejects with TOO_MANY_REQUESTS, retryAfterMs, a 429 and headers; each user and window for itself", async () => {
    const { trpcServer } = await load("trpc.ts");
    const url = `http://127.0.0.1:${await listen(trpcServer.server ?? trpcServer)}`;
    let last: Response | undefined;
    const clientOf = (user: string): Exports =>
      createTRPCClient({
        links: [httpLink({ url, headers: { "x-user": user }, fetch: async (...call) => (last = await fetch(...(call as [string]))) })],
      });
    for (let i = 0; i < 100; i++) await clientOf("ann")["hello"].query();
    const error = await clientOf("ann")
      ["hello"].query()
      .catch((error: unknown) => error);
    expect(error).toBeInstanceOf(TRPCClientError);
    expect(error).toMatchObject({
      message: 'Rate limit "trpc" exceeded. Try again in 61 seconds.',
      data: { code: "TOO_MANY_REQUESTS", httpStatus: 429, path: "hello", retryAfterMs: expect.any(Number) },
    });
    expect(last?.status).toBe(429);
    expect(last?.headers.get("retry-after")).toBe("61");
    expect(last?.headers.get("ratelimit")).toBe('"trpc";r=0;t=61');
    expect(await clientOf("bob")["hello"].query()).toBe("hello bob");
    oneWindowOn();
    expect(await clientOf("ann")["hello"].query()).toBe("hello ann");
    trpcServer.close();
  });

  const rejectedQuery = (wait: unknown) => [
    expect.objectContaining({ extensions: expect.objectContaining({ code: "TOO_MANY_REQUESTS", retryAfterMs: wait }) }),
  ];

  /** Both servers have the same limits, in one store, so each gets users of its own. */
  async function graphLimits(send: (user: string, query: string) => Promise<Exports>, name: string): Promise<void> {
    const [ann, bob] = [`${name}-ann`, `${name}-bob`];
    const posts = (first: number) => `{ posts(first: ${first}) }`;
    expect((await send(ann, posts(600)))["data"].posts).toHaveLength(600);
    expect(await send(ann, posts(600))).toMatchObject({ status: 429, errors: rejectedQuery(expect.any(Number)) });
    expect((await send(ann, posts(400)))["data"].posts).toHaveLength(400);
    expect((await send(bob, posts(2000)))["errors"]).toMatchObject([{ message: expect.stringContaining("more than the limit of 1000") }]);
    for (let i = 0; i < 10; i++) expect((await send(bob, "{ search }"))["data"].search).toBe("found");
    const partial = await send(bob, `{ search ${"posts(first: 1)"} }`);
    expect(partial["status"]).toBe(200);
    expect(partial["data"]).toEqual({ search: null, posts: ["post 0"] });
    expect(partial["errors"]).toEqual(rejectedQuery(expect.any(Number)));
    expect(partial["errors"]).toMatchObject([{ path: ["search"] }]);
  }

  it("Apollo Server: counts queries by their cost, and a field by its calls", async () => {
    const { apollo } = await load("apollo.ts");
    await graphLimits(async (user, query) => {
      const { body, http } = await apollo.executeOperation({ query }, { contextValue: { user } });
      return { status: http.status ?? 200, ...JSON.parse(JSON.stringify(body.singleResult)) };
    }, "apollo");
    await apollo.stop();
  });

  it("GraphQL Yoga: counts queries by their cost, and a field by its calls", async () => {
    const { yoga } = await load("yoga.ts");
    const server = createNodeServer(yoga);
    const url = `http://127.0.0.1:${await listen(server)}/graphql`;
    await graphLimits(async (user, query) => {
      const headers = { "content-type": "application/json", "x-user": user };
      const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ query }) });
      return { status: response.status, ...((await response.json()) as object) };
    }, "yoga");
    server.close();
  });

  it("Socket.IO: limits connections by address and messages by user", async () => {
    const { io } = await load("socket-io.ts");
    const server = createNodeServer();
    io.attach(server);
    const url = `http://127.0.0.1:${await listen(server)}`;
    const open = (user: string): Socket => connect(url, { auth: { user }, transports: ["websocket"], reconnection: false, forceNew: true });
    const once = (socket: Socket, event: string) => new Promise<Exports>((resolve) => socket.once(event, resolve));
    const [first, ...others] = Array.from({ length: 10 }, (_, i) => open(`user-${i % 9}`));
    await Promise.all([first, ...others].map((socket) => once(socket as Socket, "connect")));
    const rejected = open("user-10");
    expect(await once(rejected, "connect_error")).toMatchObject({
      message: expect.stringContaining('Rate limit "sockets" exceeded.'),
      data: { retryAfterMs: expect.any(Number) },
    });
    const said = await Promise.all(Array.from({ length: 100 }, (_, i) => first?.emitWithAck("say", i)));
    expect(said.at(-1)).toBe("you said 99");
    const limited = once(first as Socket, "limited");
    first?.emit("say", "too much");
    expect(await limited).toEqual({ event: "say", retryAfterMs: expect.any(Number) });
    expect(await others[0]?.emitWithAck("say", "hello")).toBe("you said hello");
    await io.close();
  });

  it("ws: limits handshakes by address and messages by user", async () => {
    const { webSockets } = await load("ws.ts");
    const url = `ws://127.0.0.1:${webSockets.address().port}`;
    const open = (user: string) => new WebSocket(url, { headers: { "x-user": user } });
    const connected = await Promise.all(
      Array.from({ length: 10 }, async (_, i) => {
        const socket = open(`user-${i}`);
        await new Promise((resolve) => socket.once("open", resolve));
        return socket;
      }),
    );
    const response = await new Promise<Exports>((resolve) =>
      open("user-11")
        .on("error", () => undefined)
        .once("unexpected-response", (_, response) => resolve(response)),
    );
    expect(response["statusCode"]).toBe(429);
    expect(response["headers"]["retry-after"]).toMatch(/^\d+$/);
    const [ann, bob] = connected as [WebSocket, WebSocket];
    const answers: string[] = [];
    const all = new Promise<void>((resolve) => ann.on("message", (data) => answers.push(`${data}`) === 101 && resolve()));
    for (let i = 0; i < 101; i++) ann.send(`${i}`);
    await all;
    expect(answers[99]).toBe("you said 99");
    expect(JSON.parse(answers[100] ?? "")).toEqual({ error: "too many messages", retryAfterMs: expect.any(Number) });
    bob.send("hello");
    expect(`${await new Promise((resolve) => bob.once("message", resolve))}`).toBe("you said hello");
    for (const socket of connected) socket.terminate();
    webSockets.close();
  });

  it("MCP: limits each tool for each agent, with an error that the agent reads", async () => {
    const { createServer } = await load("mcp.ts");
    const agent = async (sessionId: string): Promise<Client> => {
      const [ours, theirs] = InMemoryTransport.createLinkedPair();
      theirs.sessionId = sessionId;
      await createServer().connect(theirs);
      const client = new Client({ name: sessionId, version: "1.0.0" });
      await client.connect(ours);
      return client;
    };
    const [ann, bob] = [await agent("ann"), await agent("bob")];
    const search = (client: Client) => client.callTool({ name: "search", arguments: { query: "a" } });
    const deploy = (client: Client) => client.callTool({ name: "deploy", arguments: { version: "1" } });
    for (let i = 0; i < 30; i++) expect((await search(ann)).isError).toBeUndefined();
    expect(await search(ann)).toMatchObject({
      isError: true,
      content: [{ type: "text", text: expect.stringMatching(/^Rate limit "tools" exceeded\. Try again in \d+ seconds\.$/) }],
    });
    expect((await deploy(ann)).content).toEqual([{ type: "text", text: "deployed 1" }]);
    expect((await deploy(ann)).isError).toBe(true);
    expect((await search(bob)).content).toEqual([{ type: "text", text: "found a" }]);
    oneWindowOn();
    expect((await search(ann)).content).toEqual([{ type: "text", text: "found a" }]);
    await Promise.all([ann.close(), bob.close()]);
  });

  it("BullMQ: delays the jobs of a tenant by retryAfterMs, without using up an attempt, and runs those of others", async () => {
    vi.useRealTimers();
    const { worker, mails, connection } = await load("worker.ts");
    const queue = new Queue("mails", { connection });
    const events = new QueueEvents("mails", { connection: { host: "127.0.0.1", port: redis.port } });
    await events.waitUntilReady();
    const delayed = new Promise<string>((resolve) => events.once("delayed", ({ jobId }) => resolve(jobId)));
    const add = (tenant: string, to: string) => queue.add("mail", { tenant, to });
    const sent = await Promise.all(Array.from({ length: 10 }, (_, i) => add("acme", `${i}`)));
    for (const [i, job] of sent.entries()) expect(await job.waitUntilFinished(events)).toBe(`sent to ${i}`);
    const late = await add("acme", "late");
    expect(await delayed).toBe(late.id);
    const [waiting] = await queue.getDelayed();
    const { retryAfterMs } = await mails.limiter.peek("acme");
    expect(waiting?.delay).toBeGreaterThanOrEqual(retryAfterMs);
    expect(waiting?.delay).toBeLessThanOrEqual(121_000);
    expect(waiting).toMatchObject({ attemptsMade: 0, data: { to: "late" } });
    expect(await (await add("other", "bob")).waitUntilFinished(events)).toBe("sent to bob");
    await mails.limiter.reset("acme");
    await waiting?.promote();
    expect(await late.waitUntilFinished(events)).toBe("sent to late");
    await Promise.all([worker.close(), queue.close(), events.close()]);
    connection.disconnect();
  });
});
