import { type ClientRequest, type IncomingMessage, request as openRequest } from "node:http";
import type { AddressInfo } from "node:net";
import type { Decision, FloodgateEvent, Store } from "@floodgate/core";
import supertest, { type Response } from "supertest";
import type { Adapter, Carried, Handler, LimitSetup, ProxySetting, Running, Setup, Step } from "./adapter.js";

/** What the suite needs of a test runner: those of Vitest, Jest and `node:test` fit. */
export interface AdapterRunner {
  describe(name: string, body: () => void): unknown;
  it(name: string, body: () => Promise<void>): unknown;
}

/** The runner, with a world of its own for each case. */
export interface AdapterSuite {
  readonly adapter: Adapter;
  describe(name: string, body: () => void): void;
  it(name: string, body: (web: Web) => Promise<void>): void;
}

/** An instant like any other, 15 s into an hour; the clock of a case starts here. */
export const startMs = 1_789_948_815_000;

/** The client of every request that says nothing else. */
export const self = "127.0.0.1";

export type Headers = Readonly<Record<string, string | readonly string[]>>;

/** An app as a case wants it. */
export interface Wanted {
  readonly limits: readonly LimitSetup[];
  /** Default: all limits for all requests, then the route `/`. */
  readonly steps?: readonly Step[];
  readonly proxy?: ProxySetting;
  readonly host?: string;
  readonly http2?: boolean;
  readonly handler?: Handler;
  readonly outer?: Setup["outer"];
  /** The adapter's own default store, with the real clock. */
  readonly ownStores?: boolean;
  /** Each limit is made anew for each request, with a store of its own. */
  readonly anew?: boolean;
}

/** The world of one case: a clock that stands until it is moved, a store, and the apps that it starts. */
export class Web {
  nowMs: number = startMs;
  readonly store: Store<"sync">;
  readonly events: FloodgateEvent[] = [];
  readonly #adapter: Adapter;
  readonly #apps: App[] = [];

  constructor(adapter: Adapter) {
    this.#adapter = adapter;
    this.store = adapter.store(() => this.nowMs);
  }

  /** Starts an app with these limits for all requests, or as the case wants it. Limits are on this world's store unless they say otherwise. */
  async start(wanted: Wanted | LimitSetup): Promise<App> {
    const { limits, steps, proxy, host, http2, handler, outer, ownStores, anew }: Wanted =
      "limits" in wanted ? wanted : { limits: [wanted] };
    const errors: unknown[] = [];
    const running = await this.#adapter.start({
      limits: ownStores === true || anew === true ? limits : limits.map((limit) => ({ store: this.store, ...limit })),
      steps: steps ?? [...limits.map((_, limit) => ({ limit })), { route: "/" }, { route: "/", method: "post" }],
      ...(proxy === undefined ? {} : { proxy }),
      ...(host === undefined ? {} : { host }),
      ...(http2 === undefined ? {} : { http2 }),
      ...(outer === undefined ? {} : { outer }),
      ...(anew === undefined ? {} : { anew }),
      handler: handler ?? ((_, decision) => ({ body: { served: true, decision } })),
      onError: (error) => errors.push(error),
    });
    const app = new App(running, errors);
    this.#apps.push(app);
    return app;
  }

  /** An `onEvent` that remembers, and a promise of the first event of a type. */
  listen(type: FloodgateEvent["type"]): { onEvent: (event: FloodgateEvent) => void; heard: Promise<FloodgateEvent> } {
    let hear: (event: FloodgateEvent) => void = () => undefined;
    const heard = new Promise<FloodgateEvent>((resolve) => {
      hear = resolve;
    });
    const onEvent = (event: FloodgateEvent): void => {
      this.events.push(event);
      if (event.type === type) hear(event);
    };
    return { onEvent, heard };
  }

  async end(): Promise<void> {
    for (const app of this.#apps) await app.end();
  }
}

/** An app under test. */
export class App {
  readonly limits: readonly Carried[];
  /** What reached the framework's error handling. */
  readonly errors: readonly unknown[];
  readonly server: Running["server"];

  constructor(running: Running, errors: readonly unknown[]) {
    this.server = running.server;
    this.limits = running.limits;
    this.errors = errors;
  }

  /** The codes, or else the messages, of the errors. */
  get codes(): unknown[] {
    return this.errors.map((error) => (error as { code?: unknown }).code ?? (error as Error).message);
  }

  /** What the first middleware knows of a key, under a rule or its first. */
  async peek(key: string = self, rule?: string): Promise<Decision> {
    const limiter = rule === undefined ? this.limits[0]?.limiter : this.limits[0]?.limiters.get(rule);
    if (limiter === undefined) throw new Error(`No limit ${rule ?? ""}`);
    return await limiter.peek(key);
  }

  get(path = "/", headers: Headers = {}): Promise<Response> {
    return this.send("get", path, headers);
  }

  async send(method: "get" | "head" | "options" | "post", path = "/", headers: Headers = {}): Promise<Response> {
    return await supertest(this.server)
      [method](path)
      .set(headers as Record<string, string>);
  }

  /** Posts a value as JSON, or a text that is JSON already. */
  async post(path: string, body: unknown, headers: Headers = {}): Promise<Response> {
    return await supertest(this.server)
      .post(path)
      .set({ "content-type": "application/json", ...(headers as Record<string, string>) })
      .send(typeof body === "string" ? body : JSON.stringify(body));
  }

  /** The statuses of so many requests, one after the other. */
  async statuses(count: number, path = "/", headers: Headers = {}): Promise<number[]> {
    const statuses: number[] = [];
    for (let i = 0; i < count; i++) statuses.push((await this.get(path, headers)).status);
    return statuses;
  }

  /** A request whose target and headers stand as they are given, to be hung up at will. */
  open(target: string, headers: Headers = {}): ClientRequest {
    const { port } = this.server.address() as AddressInfo;
    const request = openRequest({ host: self, port, path: target, headers: headers as Record<string, string | string[]>, agent: false });
    request.on("error", () => undefined);
    request.end();
    return request;
  }

  /** The status, the header lines as they came, and the body's text. */
  async raw(target: string, headers: Headers = {}): Promise<{ status: number; lines: (name: string) => string[]; text: string }> {
    const request = this.open(target, headers);
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.on("response", resolve);
      request.on("error", reject);
    });
    let text = "";
    for await (const chunk of response) text += chunk;
    const lines = (name: string): string[] =>
      response.rawHeaders.filter((_, i, all) => i % 2 === 1 && all[i - 1]?.toLowerCase() === name.toLowerCase());
    return { status: response.statusCode ?? 0, lines, text };
  }

  /** Until the server has noticed that every client is gone. */
  async deserted(): Promise<void> {
    const connections = (): Promise<number> => new Promise((resolve) => this.server.getConnections((_, count) => resolve(count)));
    while ((await connections()) > 0) await turn();
    // Its requests hear of it a little later.
    for (let i = 0; i < 3; i++) await turn();
  }

  async end(): Promise<void> {
    for (const limit of this.limits) limit.close();
    const closed = new Promise((resolve) => this.server.close(resolve));
    // A server of HTTP/2 has no such method.
    this.server.closeAllConnections?.();
    await closed;
  }
}

/** One turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A promise and what keeps it. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** A store that answers by promise. */
export function later(store: Store<"sync">): Store<"async"> {
  return {
    mode: "async",
    consume: async (...check) => store.consume(...check),
    consumeAll: async (checks) => store.consumeAll(checks),
    peek: async (...look) => store.peek(...look),
    settle: async (...charge) => store.settle(...charge),
    reset: async (...which) => store.reset(...which),
  };
}
