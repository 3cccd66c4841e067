import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import { documentOf } from "@floodgate/docs";
import { memoryStore, rateLimit } from "@floodgate/node";
import { parseRules } from "@floodgate/rules";
import { startHaproxy, startNginx } from "@floodgate/test-servers";
import { expect, it } from "vitest";
import { listen } from "../../../test/listen.js";

// The rules of docs/migrating/from-proxies.md beside the real proxies. The windows and steps of their limits are longer than a test.

const { blocks } = documentOf("docs/migrating/from-proxies.md");
const codeOf = (language: string, part: RegExp): string =>
  blocks.find((block) => block.language === language && part.test(block.code))?.code as string;

async function isServed(port: number, path: string): Promise<boolean> {
  const [response] = (await once(request({ host: "127.0.0.1", port, path, agent: false }).end(), "response")) as [IncomingMessage];
  await once(response.resume(), "end");
  return response.statusCode === 200;
}

/** An app, and how many requests of it are in flight. With `waits`, it answers when it is told. */
interface App {
  readonly port: number;
  readonly open: (() => void)[];
}

/** Runs what `use` does with an app behind rules, or without them. */
async function withApp<T>(waits: boolean, rules: string | undefined, use: (app: App) => Promise<T>): Promise<T> {
  const store = memoryStore({ clock: () => 1_800_001_000_000 });
  const limit = rules === undefined ? undefined : rateLimit({ rules: parseRules(rules).rules as never, store });
  const open: (() => void)[] = [];
  const server = createServer((req, res) => {
    const serve = (): void => {
      if (waits) open.push(() => res.end("ok"));
      else res.end("ok");
    };
    if (limit === undefined) serve();
    else limit(req, res, serve);
  });
  try {
    return await use({ port: await listen(server), open });
  } finally {
    limit?.close();
    server.close();
  }
}

/** Which of several requests are served, one after the other. */
async function inTurn(port: number, path: string, count: number): Promise<boolean[]> {
  const all: boolean[] = [];
  for (let i = 0; i < count; i++) all.push(await isServed(port, path));
  return all;
}

/** Whether a third request is served while two are in flight, and whether those are. */
async function besideTwo(port: number, path: string, open: App["open"]): Promise<boolean[]> {
  const two = [isServed(port, path), isServed(port, path)];
  await expect.poll(() => open.length).toBe(2);
  const third = await isServed(port, path);
  for (const end of open) end();
  return [third, ...(await Promise.all(two))];
}

async function withNginx<T>(upstream: number, use: (port: number) => Promise<T>): Promise<T> {
  const [zones = "", locations = ""] = codeOf("nginx", /limit_req/).split("\n\n");
  const proxied = locations.replaceAll(" }", ` proxy_pass http://127.0.0.1:${upstream}; }`);
  const nginx = await startNginx({ config: ({ port }) => `${zones}\nserver { listen 127.0.0.1:${port}; ${proxied} }` });
  try {
    return await use(nginx.port);
  } finally {
    await nginx.stop();
  }
}

const rulesOfNginx = codeOf("yaml", /name: downloads/);

it("nginx and our rules reject the same requests: limit_req with a burst and nodelay", async () => {
  const expected = [true, true, true, true, true, false, false];
  expect(await withApp(false, rulesOfNginx, ({ port }) => inTurn(port, "/api/x", 7))).toEqual(expected);
  const theirs = await withApp(false, undefined, (app) => withNginx(app.port, (port) => inTurn(port, "/api/x", 7)));
  expect(theirs).toEqual(expected);
});

it("nginx and our rules reject the same requests: limit_conn", async () => {
  const expected = [false, true, true];
  expect(await withApp(true, rulesOfNginx, ({ port, open }) => besideTwo(port, "/downloads", open))).toEqual(expected);
  const theirs = await withApp(true, undefined, (app) => withNginx(app.port, (port) => besideTwo(port, "/downloads", app.open)));
  expect(theirs).toEqual(expected);
});

it("HAProxy and our rules reject the same requests: a request rate in a stick table", async () => {
  const expected = [true, true, true, true, true, false, false];
  expect(await withApp(false, codeOf("yaml", /sliding-window-counter/), ({ port }) => inTurn(port, "/", 7))).toEqual(expected);
  const theirs = await withApp(false, undefined, async (app) => {
    const haproxy = await startHaproxy({
      config: ({ port }) => `defaults
  mode http
  timeout client 10s
  timeout connect 10s
  timeout server 10s
frontend limited
  bind 127.0.0.1:${port}
  ${codeOf("haproxy", /http_req_rate/).replaceAll("\n", "\n  ")}
  default_backend app
backend app
  server app 127.0.0.1:${app.port}`,
    });
    try {
      return await inTurn(haproxy.port, "/", 7);
    } finally {
      await haproxy.stop();
    }
  });
  expect(theirs).toEqual(expected);
});
