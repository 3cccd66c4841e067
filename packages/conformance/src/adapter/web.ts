import { type ClientRequest, IncomingMessage, request as openRequest, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { text as textOf } from "node:stream/consumers";
import type { Decision } from "@floodgate/core";
import type { Adapter, Carried, Handler, LimitSetup, Running, Setup } from "./adapter.js";
import { gate, self, turn, turns, World } from "./world.js";

/** The tests of one group; each gets its own `Web`. */
export interface AdapterSuite {
  readonly adapter: Adapter;
  /** The part of the random runs to do. */
  readonly effort: number;
  it(name: string, body: (web: Web) => Promise<void>): void;
}

export type Headers = Readonly<Record<string, string | readonly string[]>>;

/** A response as a client reads it. */
export interface Response {
  readonly status: number;
  /** By names in lower case; several lines are joined. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The lines of a header, whose name is in lower case. */
  readonly lines: (name: string) => string[];
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: any JSON
  readonly body: any;
}

/** The app that a test needs. */
export interface Wanted extends Partial<Omit<Setup, "limits" | "onError">> {
  readonly limits: readonly LimitSetup[];
  /** Uses the adapter's default store. */
  readonly ownStores?: boolean;
}

/** The world of one test, and the apps that it starts. */
export class Web extends World {
  readonly #adapter: Adapter;
  readonly #apps: App[] = [];

  constructor(adapter: Adapter) {
    super((clock) => adapter.store(clock));
    this.#adapter = adapter;
  }

  /**
   * Starts an app with one limit on all requests, or as described. Limits use this test's store unless they set another. By default all limits
   * are on all requests, then comes the route `/`.
   */
  async start(wanted: Wanted | LimitSetup): Promise<App> {
    const { limits, steps, handler, ownStores, ...passed }: Wanted = "limits" in wanted ? wanted : { limits: [wanted] };
    const errors: unknown[] = [];
    const running = await this.#adapter.start({
      ...passed,
      limits: ownStores === true || passed.anew === true ? limits : limits.map((limit) => ({ store: this.store, ...limit })),
      steps: steps ?? [...limits.map((_, limit) => ({ limit })), { route: "/" }, { route: "/", method: "post" }],
      handler: handler ?? ((_, decision) => ({ body: { served: true, decision } })),
      onError: (error) => errors.push(error),
    });
    const app = new App(running, errors);
    this.#apps.push(app);
    return app;
  }

  async end(): Promise<void> {
    for (const app of this.#apps) await app.end();
  }
}

/** An app under test. */
export class App {
  readonly limits: readonly Carried[];
  /** The errors that reached the framework's error handler. */
  readonly errors: readonly unknown[];
  readonly server: Running["server"];
  readonly #sockets = new Set<Socket>();

  constructor(running: Running, errors: readonly unknown[]) {
    this.server = running.server;
    this.server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    this.limits = running.limits;
    this.errors = errors;
  }

  /** The codes of the errors, or their messages if they have none. */
  get codes(): unknown[] {
    return this.errors.map((error) => (error as { code?: unknown }).code ?? (error as Error).message);
  }

  /** Peeks at a key in the first middleware, under `rule` or its first rule. */
  async peek(key: string = self, rule?: string): Promise<Decision> {
    const limiter = rule === undefined ? this.limits[0]?.limiter : this.limits[0]?.limiters.get(rule);
    if (limiter === undefined) throw new Error(`No limit ${rule ?? ""}`);
    return await limiter.peek(key);
  }

  get(path = "/", headers: Headers = {}): Promise<Response> {
    return this.send("get", path, headers);
  }

  /** Posts a value as JSON. */
  post(path: string, body: unknown, headers: Headers = {}): Promise<Response> {
    return this.send("post", path, { "content-type": "application/json", ...headers }, JSON.stringify(body));
  }

  /** Sends a request with exactly this target and headers, on a connection of its own. */
  async send(method: "get" | "head" | "options" | "post", path = "/", headers: Headers = {}, body?: string): Promise<Response> {
    const request = this.open(path, headers, method, body);
    const response = await new Promise<IncomingMessage>((resolve, reject) => request.on("response", resolve).on("error", reject));
    const text = await textOf(response);
    return {
      status: response.statusCode ?? 0,
      headers: response.headers as Response["headers"],
      lines: (name) => response.rawHeaders.filter((_, i, all) => i % 2 === 1 && all[i - 1]?.toLowerCase() === name),
      text,
      body: text !== "" && /json/.test(response.headers["content-type"] ?? "") ? JSON.parse(text) : {},
    };
  }

  /** The statuses of `count` requests, one after the other. */
  async statuses(count: number, path = "/", headers: Headers = {}): Promise<number[]> {
    const statuses: number[] = [];
    for (let i = 0; i < count; i++) statuses.push((await this.get(path, headers)).status);
    return statuses;
  }

  /** Opens a request. `destroy` disconnects it. */
  open(path: string, headers: Headers = {}, method = "get", body?: string): ClientRequest {
    const { port } = this.server.address() as AddressInfo;
    const sent = headers as Record<string, string | string[]>;
    const request = openRequest({ host: self, port, path, method: method.toUpperCase(), headers: sent, agent: false });
    request.on("error", () => undefined);
    return request.end(body);
  }

  /** Passes a request to the app as libraries for AWS Lambda do: its response has a socket that only takes what is written. */
  handle(headers: Readonly<Record<string, string>>): void {
    const nothing = (): void => undefined;
    const write = (_chunk: unknown, ...[encoding, written]: (string | (() => void))[]): boolean => {
      const done = written ?? encoding;
      if (typeof done === "function") done();
      return true;
    };
    const ends = { on: nothing, removeListener: nothing, destroy: nothing, cork: nothing, uncork: nothing };
    const socket = { remoteAddress: self, _writableState: {}, writable: true, write, ...ends } as unknown as Socket;
    const sent = { host: "localhost", ...headers };
    const request = Object.assign(new IncomingMessage(socket), {
      method: "GET",
      url: "/",
      headers: sent,
      rawHeaders: Object.entries(sent).flat(),
    });
    request.push(null);
    const response = new ServerResponse(request);
    response.assignSocket(socket);
    this.server.emit("request", request, response);
  }

  /** Waits until the server has noticed that all clients disconnected. */
  async deserted(): Promise<void> {
    const connections = (): Promise<number> => new Promise((resolve) => this.server.getConnections((_, count) => resolve(count)));
    while ((await connections()) > 0) await turn();
    // The requests notice a little later than the connections.
    await turns(3);
  }

  async end(): Promise<void> {
    for (const limit of this.limits) limit.close();
    const closed = new Promise((resolve) => this.server.close(resolve));
    // A failed test leaves clients open. HTTP/2 servers do not have `closeAllConnections`, and would wait for them.
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

/** A handler that answers once `open` is called, and the paths of the requests that have reached it. */
export function waitingHandler(): { handler: Handler; begun: readonly string[]; open: () => void } {
  const { opened, open } = gate();
  const begun: string[] = [];
  const handler: Handler = async ({ path }) => {
    begun.push(path);
    await opened;
    return { body: "late" };
  };
  return { handler, begun, open };
}
