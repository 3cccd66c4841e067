import { it as test } from "vitest";
import { self, turn, World } from "../../../conformance/src/adapter/world.js";
import { memoryStore } from "../../../store-memory/src/index.js";
import { RateLimit, type RateLimitControls, type RateLimitOptions, type RequestReader, sentPath, withControls } from "../../src/adapter.js";
import type { Decision } from "../../src/index.js";
import type { Clock } from "../../src/store.js";

export { describe } from "vitest";
export { gate, items, later, self, turn } from "../../../conformance/src/adapter/world.js";

export type Headers = Readonly<Record<string, string | readonly string[]>>;

/** A request, as an app's functions read it. */
export interface RequestView {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly app: App;
  readonly peer: string;
  /** The pattern of the route that handles it. */
  readonly route: string | undefined;
  header(name: string): string | undefined;
}

interface Reply {
  readonly status?: number;
  readonly body?: unknown;
}

/** A response as a client reads it. */
export interface Response {
  readonly status: number;
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: any JSON
  readonly body: any;
}

export type Handler = (request: RequestView, decision: Decision | undefined) => Reply | Promise<Reply>;

/** The options of a middleware. */
export interface LimitSetup extends RateLimitOptions<RequestView, string> {
  readonly onLimited?: Handler;
}

export type Step =
  | { readonly limit: number; readonly path?: string }
  | { readonly route: string; readonly method?: "get" | "post"; readonly limits?: readonly number[] }
  | { readonly router: string; readonly steps: readonly Step[] };

interface Wanted {
  readonly limits: readonly LimitSetup[];
  /** Default: all limits on all requests, then the route `/`. */
  readonly steps?: readonly Step[];
  readonly handler?: Handler;
  /** Limits without a store get their own. */
  readonly ownStores?: boolean;
  /** The address at the other end of each connection. */
  readonly host?: string;
}

const reader: RequestReader<RequestView> = {
  app: (request) => request.app,
  method: (request) => request.method,
  path: (request) => sentPath(request.path),
  header: (request, name) => (Object.hasOwn(request.headers, name) ? request.headers[name] : undefined),
  remoteAddress: (request) => request.peer,
  clientIp: (request) => request.peer,
  trustsProxy: () => false,
  route: (request) => request.route,
};

const limitOf = (setup: LimitSetup): RateLimit<RequestView> =>
  new RateLimit("rateLimit", setup, ["onLimited"], reader, (options) => memoryStore({ maxKeys: 10_000, ...options }));

/** A store as the tests use it: small, because many are made. */
export const memory = (clock: Clock): ReturnType<typeof memoryStore> => memoryStore({ clock, maxKeys: 10_000 });

/** The world of a test, and the apps that it starts. `Date` reads its clock too. */
export class Web extends World {
  readonly #apps: App[] = [];
  readonly #realDate = Date;

  constructor() {
    super(memory);
    const now = (): number => this.nowMs;
    globalThis.Date = new Proxy(Date, {
      construct: (date, parts) => (parts.length === 0 ? new date(now()) : Reflect.construct(date, parts)),
      get: (date, name) => (name === "now" ? now : Reflect.get(date, name)),
    });
  }

  /** Starts an app with one limit on all requests, or as described. Limits use this test's store unless they set another. */
  async start(wanted: Wanted | LimitSetup): Promise<App> {
    const { limits, ...more }: Wanted = "limits" in wanted ? wanted : { limits: [wanted] };
    const app = new App({ limits: more.ownStores === true ? limits : limits.map((limit) => ({ store: this.store, ...limit })), ...more });
    this.#apps.push(app);
    return app;
  }

  end(): void {
    for (const app of this.#apps) for (const limit of app.limits) limit.close();
    globalThis.Date = this.#realDate;
  }
}

/** The least app that rules can decide for: no sockets, no framework. It lets requests that a queue delays pass at once. */
export class App {
  readonly limits: readonly RateLimitControls[];
  readonly errors: unknown[] = [];
  readonly #limits: readonly RateLimit<RequestView>[];
  readonly #setups: readonly LimitSetup[];
  readonly #host: string;
  readonly #steps: readonly Step[];
  readonly #handler: Handler;

  constructor({ limits, steps, handler, host }: Wanted) {
    this.#setups = limits;
    this.#limits = limits.map(limitOf);
    this.limits = this.#limits.map((limit) => withControls({}, limit));
    this.#host = host ?? self;
    this.#steps = steps ?? [...limits.map((_, limit) => ({ limit })), { route: "/" }, { route: "/", method: "post" }];
    this.#handler = handler ?? ((_, decision) => ({ body: { served: true, decision } }));
  }

  /** The codes of the errors, or their messages if they have none. */
  get codes(): unknown[] {
    return this.errors.map((error) => (error as { code?: unknown }).code ?? (error as Error).message);
  }

  /** Peeks at a key in the first middleware, under `rule` or its first rule. */
  async peek(key: string = self, rule?: string): Promise<Decision> {
    const limiters = this.limits[0]?.limiters;
    const limiter = rule === undefined ? limiters?.values().next().value : limiters?.get(rule);
    if (limiter === undefined) throw new Error(`No limit ${rule ?? ""}`);
    return await limiter.peek(key);
  }

  get(path = "/", headers: Headers = {}): Promise<Response> {
    return this.send("get", path, headers);
  }

  /** As `get`, with the values of a header as a list. */
  async raw(path: string, headers: Headers = {}): Promise<Response & { lines: (name: string) => string[] }> {
    const response = await this.get(path, headers);
    return { ...response, lines: (name) => [response.headers[name] ?? []].flat() };
  }

  /** Posts a value as JSON; a string is sent as is. */
  post(path: string, body: unknown, headers: Headers = {}): Promise<Response> {
    return this.send("post", path, headers, JSON.parse(typeof body === "string" ? body : JSON.stringify(body)));
  }

  /** The statuses of `count` requests, one after the other. */
  async statuses(count: number, path = "/", headers: Headers = {}): Promise<number[]> {
    const statuses: number[] = [];
    for (let i = 0; i < count; i++) statuses.push((await this.get(path, headers)).status);
    return statuses;
  }

  async send(method: string, path = "/", headers: Headers = {}, body?: unknown): Promise<Response> {
    const named = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), [value].flat().join(", ")]));
    const way = wayOf(this.#steps, "", method, sentPath(path));
    const request: RequestView = {
      method: method.toUpperCase(),
      path,
      body,
      headers: named,
      app: this,
      peer: this.#host,
      route: way.route,
      header: (name) => reader.header(request, name.toLowerCase()),
    };
    const sent: ((status: number) => unknown)[] = [];
    const answered: Record<string, string> = {};
    let reply: { status: number; text: string };
    try {
      reply = await this.#answer(request, way, answered, sent);
    } catch (error) {
      this.errors.push(error);
      reply = { status: 500, text: "" };
    }
    for (const tell of sent) tell(reply.status);
    const text = method === "head" ? "" : reply.text;
    return {
      status: reply.status,
      headers: answered,
      text,
      body: /json/.test(answered["content-type"] ?? "") && text ? JSON.parse(text) : {},
    };
  }

  async #answer(
    request: RequestView,
    { limits, route }: Way,
    answered: Record<string, string>,
    sent: ((status: number) => unknown)[],
  ): Promise<{ status: number; text: string }> {
    const json = ({ status, body }: Reply, usual: number): { status: number; text: string } => {
      answered["content-type"] = "application/json";
      return { status: status ?? usual, text: JSON.stringify(body) ?? "" };
    };
    let last: Decision | undefined;
    for (const index of limits) {
      const setup = this.#setups[index] as LimitSetup;
      const limit = this.#limits[index] as RateLimit<RequestView>;
      const outcome = await limit.decide(request);
      last = outcome.decision ?? last;
      for (const { name, value, list } of outcome.headers) {
        const before = answered[name.toLowerCase()];
        answered[name.toLowerCase()] = list && before !== undefined ? `${before}, ${value}` : value;
      }
      if (outcome.action === "reject") {
        if (setup.onLimited !== undefined) return json(await setup.onLimited(request, outcome.decision), outcome.status);
        answered["content-type"] = outcome.body.contentType;
        return { status: outcome.status, text: outcome.body.text };
      }
      if (outcome.afterResponse !== undefined) sent.push(outcome.afterResponse);
    }
    return route === undefined ? { status: 404, text: "" } : json(await this.#handler(request, last), 200);
  }
}

/** The limits that a request passes, and its route. */
interface Way {
  readonly limits: readonly number[];
  readonly route: string | undefined;
}

function wayOf(steps: readonly Step[], base: string, method: string, path: string): Way {
  const limits: number[] = [];
  for (const step of steps) {
    if ("limit" in step) {
      if (isUnder(path, base + (step.path ?? ""))) limits.push(step.limit);
    } else if ("router" in step) {
      if (!isUnder(path, base + step.router)) continue;
      const inner = wayOf(step.steps, base + step.router, method, path);
      limits.push(...inner.limits);
      if (inner.route !== undefined) return { limits, route: inner.route };
    } else {
      const route = base + step.route;
      const pattern = new RegExp(`^${route.replace(/:\w+/g, "[^/]+")}/?$`, "i");
      if ((step.method ?? "get") === (method === "head" ? "get" : method) && pattern.test(path)) {
        return { limits: [...limits, ...(step.limits ?? [])], route };
      }
    }
  }
  return { limits, route: undefined };
}

const isUnder = (path: string, mount: string): boolean => mount === "" || path === mount || path.startsWith(`${mount}/`);

/** A test with a world of its own. */
export function it(name: string, body: (web: Web) => Promise<void>): void {
  test(name, async () => {
    const web = new Web();
    try {
      await body(web);
    } finally {
      web.end();
    }
  });
}

/** Returns the unhandled rejections that occurred while `run` ran. */
export async function unhandledDuring(run: () => Promise<void>): Promise<unknown[]> {
  const unhandled: unknown[] = [];
  const before = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", (reason) => unhandled.push(reason));
  try {
    await run();
    await turn();
    await turn();
  } finally {
    process.removeAllListeners("unhandledRejection");
    for (const listener of before) process.on("unhandledRejection", listener);
  }
  return unhandled;
}
