import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { Agent, createServer, type IncomingMessage, type RequestListener, request, type Server } from "node:http";
import { type AddressInfo, connect, createServer as createConnectionServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { gateway, type Running, type Settings } from "../../src/index.js";

/** Closes what a test started, the newest first. */
export function atEnd(close: () => unknown): void {
  // Not `afterEach`: files that share their modules load this one once, so its hooks would be those of the first file only.
  onTestFinished(async () => {
    await close();
  });
}

/** A limit that no test reaches, so that nothing but the proxy decides. */
export const loose = "rules: [{ name: all, key: global, policy: { algorithm: fixed-window, limit: 1000000, window: 365d } }]";

/** Rules with one limit. */
export function limitOf(limit: number, more = ""): string {
  return `rules: [{ name: all, key: global, ${more} policy: { algorithm: fixed-window, limit: ${limit}, window: 365d } }]`;
}

export interface TestGateway extends Running {
  readonly port: number;
  readonly url: string;
  /** The lines of the log. */
  readonly lines: { readonly level: number; readonly message: string; readonly [name: string]: unknown }[];
  /** Replaces the rules file. */
  readonly rulesFile: string;
}

/** Starts an upstream that speaks raw bytes, and returns its port. `talk` gets each connection. */
export async function startRaw(talk: (socket: Socket, count: number) => void): Promise<number> {
  const sockets: Socket[] = [];
  const server = createConnectionServer((socket) => {
    socket.on("error", () => {});
    talk(socket, sockets.push(socket));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  atEnd(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as { port: number }).port;
}

/** Starts a gateway that ends with the test. */
export async function startGateway(upstream: string | number, rules?: string, settings?: Partial<Settings>): Promise<TestGateway> {
  const started = await openGateway(upstream, rules, settings);
  atEnd(() => started.close());
  return started;
}

export async function openGateway(upstream: string | number, rules = loose, settings: Partial<Settings> = {}): Promise<TestGateway> {
  const directory = await mkdtemp(join(tmpdir(), "floodgate-proxy-"));
  const rulesFile = join(directory, "limits.yaml");
  await writeFile(rulesFile, rules);
  const clean = (): Promise<void> => rm(directory, { recursive: true, force: true });
  const lines: TestGateway["lines"] = [];
  const running = await gateway(
    {
      rules: rulesFile,
      upstream: typeof upstream === "number" ? `http://127.0.0.1:${upstream}` : upstream,
      listen: "127.0.0.1:0",
      admin: false,
      drainMs: 0,
      closeMs: 200,
      ...settings,
    },
    { log: { write: (line: string) => lines.push(JSON.parse(line)) } },
  ).catch((error) => clean().then(() => Promise.reject(error)));
  const address = running.addresses["listen"] as string;
  const port = Number(address.slice(address.lastIndexOf(":") + 1));
  const close = async (): Promise<void> => {
    await running.close();
    await clean();
  };
  return { addresses: running.addresses, close, port, url: `http://127.0.0.1:${port}`, lines, rulesFile };
}

/** An upstream made with Node's own server. It answers 200 unless `listener` does. */
export async function startUpstream(
  listener: RequestListener = (_request, response) => void response.end("ok"),
): Promise<Server & { port: number }> {
  const server = createServer({ keepAliveTimeout: 60_000, requestTimeout: 0 }, listener);
  await once(server.listen(0, "127.0.0.1"), "listening");
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(server, { port: (server.address() as AddressInfo).port });
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly rawHeaders: readonly string[];
  readonly body: string;
  readonly trailers: IncomingMessage["trailers"];
}

/** Sends a request on a connection of its own, or of `agent`. */
export async function ask(
  url: string,
  options: { method?: string; headers?: Record<string, string | string[]>; body?: string | Buffer; agent?: Agent } = {},
): Promise<Answer> {
  const { method = "GET", headers = {}, body, agent = new Agent() } = options;
  const sent = request(url, { method, headers, agent });
  sent.end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return {
    status: response.statusCode as number,
    headers: response.headers,
    rawHeaders: response.rawHeaders,
    body: await textOf(response),
    trailers: response.trailers,
  };
}

export async function textOf(message: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** A connection that sends bytes as they are, and collects what comes back. */
export interface RawConnection {
  readonly socket: Socket;
  readonly text: string;
  /** Resolves once the text fits. */
  until(pattern: RegExp): Promise<string>;
  /** Resolves with all text once the other side has closed. */
  closed(): Promise<string>;
  /** The error that ended it, such as ECONNRESET. */
  readonly error: NodeJS.ErrnoException | undefined;
}

export async function rawConnection(port: number, bytes: string | Buffer = ""): Promise<RawConnection> {
  const socket = connect(port, "127.0.0.1");
  atEnd(() => socket.destroy());
  let text = "";
  let error: NodeJS.ErrnoException | undefined;
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    socket.emit("text");
  });
  socket.on("error", (failure) => {
    error = failure;
  });
  await once(socket, "connect");
  socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
  return {
    socket,
    get text() {
      return text;
    },
    get error() {
      return error;
    },
    async until(pattern) {
      while (!pattern.test(text)) {
        if (socket.closed) throw new Error(`closed before ${pattern}, after ${JSON.stringify(text)}`);
        await Promise.race([once(socket, "text"), new Promise((done) => socket.once("close", done))]);
      }
      return text;
    },
    async closed() {
      if (!socket.closed) await new Promise((done) => socket.once("close", done));
      return text;
    },
  };
}
