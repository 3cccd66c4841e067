import fastifyRateLimit from "@fastify/rate-limit";
import Fastify, { type FastifyInstance, type InjectOptions } from "fastify";
import { describe, expect, it } from "vitest";
import { rateLimit } from "../src/index.js";

// What users of @fastify/rate-limit rely on, from the examples of its README, on both sides.

type Side = (app: FastifyInstance, options: "max 3" | "only routes") => Promise<unknown>;

const sides: [string, Side, (max: number) => object][] = [
  [
    "@fastify/rate-limit",
    async (app, options) => app.register(fastifyRateLimit, options === "max 3" ? { max: 3, timeWindow: "365d" } : { global: false }),
    (max) => ({ max, timeWindow: "365d" }),
  ],
  [
    "@floodgate/fastify",
    async (app, options) => app.register(rateLimit(options === "max 3" ? { limit: 3, window: "365d" } : { global: false })),
    (limit) => ({ limit, window: "365d" }),
  ],
];

async function statuses(app: FastifyInstance, url: string, count: number, options: InjectOptions = {}): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i++) all.push((await app.inject({ url, ...options })).statusCode);
  return all;
}

const ok = async (): Promise<string> => "ok";

describe.each(sides)("%s", (_, register, limit) => {
  it("counts the routes of an app together, by client", async () => {
    const app = Fastify();
    await register(app, "max 3");
    app.get("/a", ok);
    app.get("/b", ok);
    expect([await statuses(app, "/a", 2), await statuses(app, "/b", 2)]).toEqual([
      [200, 200],
      [200, 429],
    ]);
    expect(await statuses(app, "/a", 1, { remoteAddress: "192.0.2.1" })).toEqual([200]);
  });

  it("limits a route by its own config, and leaves one with false alone", async () => {
    const app = Fastify();
    await register(app, "max 3");
    app.get("/private", { config: { rateLimit: limit(1) } }, ok);
    app.get("/public", { config: { rateLimit: false } }, ok);
    expect([await statuses(app, "/private", 2), await statuses(app, "/public", 5)]).toEqual([
      [200, 429],
      [200, 200, 200, 200, 200],
    ]);
  });

  it("with global: false, limits routes with a config alone, each with a count of its own", async () => {
    const app = Fastify();
    await register(app, "only routes");
    app.get("/a", { config: { rateLimit: limit(1) } }, ok);
    app.get("/b", { config: { rateLimit: limit(1) } }, ok);
    app.get("/c", ok);
    expect([await statuses(app, "/a", 2), await statuses(app, "/b", 2), await statuses(app, "/c", 3)]).toEqual([
      [200, 429],
      [200, 429],
      [200, 200, 200],
    ]);
  });

  it("runs before the hooks of a route, and after those that the app added before it", async () => {
    const app = Fastify();
    const ran: string[] = [];
    app.addHook("onRequest", async () => void ran.push("before"));
    await register(app, "max 3");
    app.get("/", { preHandler: async () => void ran.push("route") }, ok);
    await statuses(app, "/", 4);
    expect(ran).toEqual(["before", "route", "before", "route", "before", "route", "before"]);
  });

  it("sends Retry-After in whole seconds with a 429", async () => {
    const app = Fastify();
    await register(app, "only routes");
    app.get("/", { config: { rateLimit: limit(1) } }, ok);
    await statuses(app, "/", 1);
    const { statusCode, headers } = await app.inject("/");
    expect([statusCode, headers["retry-after"]]).toEqual([429, expect.stringMatching(/^\d+$/)]);
  });
});
