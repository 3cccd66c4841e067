import { type Decision, fixedWindow } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import fc from "fast-check";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { etag } from "hono/etag";
import { HTTPException } from "hono/http-exception";
import { streamText } from "hono/streaming";
import { parseList } from "structured-headers";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.js";
import { type HonoRateLimitOptions, rateLimit } from "../src/index.js";

// Hono has many ways to respond, and applies headers that were set before `next()` only to responses that it made itself.

const policy = fixedWindow({ limit: 1_000_000, window: "365d" });
const store = memoryStore();
const limit = (name: string, options: Partial<HonoRateLimitOptions<object>> = {}) =>
  rateLimit({ name, policy, key: "global", store, ...options });
const names = (response: Response, header = "ratelimit"): unknown[] => parseList(response.headers.get(header) ?? "").map(([name]) => name);
const immutable = (): Promise<Response> => fetch("data:text/plain,raw");
const nothing = new Response(null, { status: 204 });

/** Ways to respond, as route handlers. */
const answers: [string, ...MiddlewareHandler[]][] = [
  ["c.json()", async (c) => c.json({ ok: true })],
  ["c.body() with headers", async (c) => c.body("ok", 201, { "x-own": "1" })],
  ["a stream", async (c) => streamText(c, async (stream) => void (await stream.write("ok")))],
  ["new Response()", async () => new Response("raw")],
  ["a response of fetch(), which is immutable", immutable],
  ["Response.redirect(), which is immutable", async () => Response.redirect("http://localhost/elsewhere", 302)],
  ["a response that is answered time and again", async () => nothing],
  [
    "c.res = new Response()",
    async (c, next) => {
      await next();
      c.res = new Response("raw");
    },
  ],
  [
    "c.res = undefined, and then another",
    async (c, next) => {
      await next();
      c.res = undefined;
      c.res = new Response("raw");
    },
    async (c) => c.text("replaced"),
  ],
  [
    "an error",
    async () => {
      throw new Error("handler");
    },
  ],
  [
    "an HTTPException with a response",
    async () => {
      throw new HTTPException(401, { res: new Response("no", { status: 401 }) });
    },
  ],
  ["nothing, so that there is no such page", async (_c, next) => next()],
];

/** Error and not-found handlers: Hono's, the app's with `c`, and the app's with raw responses. */
const handlings: [string, (app: Hono) => void][] = [
  ["Hono's own", (app) => void app.onError((error, c) => ("getResponse" in error ? error.getResponse() : c.text("no", 500)))],
  ["by c", (app) => app.onError((_, c) => c.json({ error: true }, 500)).notFound((c) => c.json({ found: false }, 404))],
  ["raw", (app) => app.onError(() => new Response("no", { status: 500 })).notFound(() => new Response("none", { status: 404 }))],
];

/** Middlewares that may surround limits and handlers. */
const around: [string, MiddlewareHandler][] = [
  ["nothing", (_c, next) => next()],
  ["cors, which looks at the response before there is one", cors()],
  ["etag, which makes a new one", etag()],
];

describe("every response has the headers of all limits that it passed, in order, once", () => {
  it("for every way to respond and every position of the limits", { timeout: 60_000 }, async () => {
    const anyOf = <T>(all: readonly T[]) => fc.constantFrom(...all);
    const place = fc.constantFrom("app", "sub-app", "route");
    await fc.assert(
      fc.asyncProperty(
        anyOf(answers),
        anyOf(handlings),
        anyOf(around),
        fc.array(place, { minLength: 1, maxLength: 4 }),
        fc.boolean(),
        async ([, ...handlers], [, handle], [, outermost], places, ownErrors) => {
          const limits = places.map((where, i) => ({ where, name: `${where} ${i}` }));
          const at = (where: string) => limits.filter((one) => one.where === where).map(({ name }) => limit(name));
          const app = new Hono();
          handle(app);
          const seen: unknown[][] = [];
          app.use(outermost, async (c, next) => {
            await next();
            seen.push(names(c.res));
          });
          for (const one of at("app")) app.use(one);
          const sub = new Hono();
          if (ownErrors) handle(sub);
          for (const one of at("sub-app")) sub.use(one);
          for (const one of [...at("route"), ...handlers]) sub.get("/route", one);
          app.route("/sub", sub);
          const expected = ["app", "sub-app", "route"].flatMap((where) =>
            limits.filter((one) => one.where === where).map(({ name }) => name),
          );
          for (let i = 0; i < 2; i++) {
            const response = await app.request("/sub/route");
            expect(names(response)).toEqual(expected);
            expect(names(response, "ratelimit-policy")).toEqual(expected);
            expect(seen.pop()).toEqual(expected);
          }
        },
      ),
      runs(200),
    );
  });

  it.each(answers)("for a single route without other middlewares: %s", async (_, ...handlers) => {
    const app = new Hono().onError(() => new Response("no", { status: 500 })).get("/", limit("a"), ...(handlers as [MiddlewareHandler]));
    expect(names(await app.request("/"))).toEqual(["a"]);
  });
});

it.each<[string, (c: Context) => void]>([
  ["c.header()", (c) => ["a=1", "b=2"].forEach((cookie) => void c.header("set-cookie", cookie, { append: true }))],
  ["c.res", (c) => ["a=1", "b=2"].forEach((cookie) => void c.res.headers.append("set-cookie", cookie))],
])("a rejection keeps headers that were set before with %s, and the items of earlier limits", async (_, prepare) => {
  const blocked = limit("blocked", { policy: fixedWindow({ limit: 1, window: "365d" }), store: memoryStore() });
  const app = new Hono()
    .use((c, next) => Promise.resolve(prepare(c)).then(next))
    .get("/alone", blocked)
    .get("/", limit("outer"), blocked);
  await app.request("/");
  const [response, alone] = [await app.request("/"), await app.request("/alone")];
  expect([response.status, alone.status]).toEqual([429, 429]);
  expect([names(response), names(response, "ratelimit-policy"), names(alone)]).toEqual([["outer", "blocked"], ["outer", "blocked"], ["blocked"]]); // biome-ignore format: a row
  for (const { headers } of [response, alone]) expect(headers.getSetCookie()).toEqual(["a=1", "b=2"]);
});

describe("a response with headers of the same names", () => {
  const upstream = { "ratelimit-policy": '"upstream";q=5', ratelimit: '"upstream";r=4;t=1', "x-ratelimit-limit": "5" };
  const proxied = (options: Partial<HonoRateLimitOptions<object>>) =>
    new Hono().get("/", limit("a", options), limit("b", options), () => new Response("raw", { headers: upstream })).request("/");

  it("keeps its list items after those of the limits", async () => {
    const response = await proxied({});
    expect(names(response)).toEqual(["a", "b", "upstream"]);
    expect(names(response, "ratelimit-policy")).toEqual(["a", "b", "upstream"]);
  });

  it("keeps its single values", async () => {
    expect((await proxied({ headers: "legacy" })).headers.get("x-ratelimit-limit")).toBe("5");
  });

  it("may have an item that begins like a limit's", async () => {
    const items = '"a";r=99;t=10, "b"';
    const raw = () => new Response("raw", { headers: { ratelimit: items } });
    const own = memoryStore({ clock: () => 0 });
    const response = await new Hono()
      .get("/", limit("a", { store: own, policy: fixedWindow({ limit: 100, window: "1s" }) }), raw)
      .request("/");
    expect(names(response)).toEqual(["a", "a", "b"]);
  });
});

it("a response that cannot be copied is not changed", async () => {
  const app = new Hono().get("/", limit("a"), () => Response.error());
  const response = await app.request("/");
  expect([response.type, response.headers.get("ratelimit")]).toEqual(["error", null]);
});

it("a raw body arrives complete, once", async () => {
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode("whole"));
      controller.close();
    },
  });
  const app = new Hono().get("/", limit("a"), limit("b"), () => new Response(body));
  expect(await (await app.request("/")).text()).toBe("whole");
});

it("headers: false sets none, on any response", async () => {
  const app = new Hono().get("/", limit("a", { headers: false }), () => new Response("raw"));
  expect([...(await app.request("/")).headers.keys()]).toEqual(["content-type"]);
});

it("a limit that did not apply does not change the response", async () => {
  const made = new Response("raw");
  const app = new Hono().get("/", limit("a", { skip: () => true }), () => made);
  expect(await app.request("/")).toBe(made);
});

it("the decision is a context variable, in handlers and after them", async () => {
  const seen: (Decision | undefined)[] = [];
  const app = new Hono().use(async (c, next) => {
    await next();
    seen.push(c.get("rateLimit"));
  });
  app.get("/", limit("a"), limit("b", { decisionName: "rateLimit" }), (c) => c.json(c.var.rateLimit?.name));
  expect(await (await app.request("/")).json()).toBe("b");
  expect(seen).toMatchObject([{ name: "b", allowed: true }]);
});
