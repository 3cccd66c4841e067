import { once } from "node:events";
import { request } from "node:http";
import type { AddressInfo } from "node:net";
import fastifyExpress from "@fastify/express";
import middie from "@fastify/middie";
import * as onExpress from "@floodgate/express";
import * as onHono from "@floodgate/hono";
import * as onKoa from "@floodgate/koa";
import { getRequestListener } from "@hono/node-server";
import { Controller, Get, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { NestExpressApplication } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import express from "express";
import Fastify, { type FastifyInstance } from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { describe, expect, it } from "vitest";
import "reflect-metadata";
import { type App, exchange } from "./exchange.js";

/** What a framework takes, and ours may not be. */
// biome-ignore lint/suspicious/noExplicitAny: whatever other frameworks take
type Any = any;

/** An app with one middleware, and the error of its first request. */
const frameworks: Record<string, (middleware: Any, told: (error: Any) => void) => App> = {
  Express: (middleware, told) => {
    const app = express();
    app.use(middleware);
    app.use(((error, _request, response, _next) => {
      told(error);
      response.status(500).end();
    }) as express.ErrorRequestHandler);
    return app;
  },
  Koa: (middleware, told) => {
    const app = new Koa();
    app.use(middleware);
    app.on("error", told);
    return app.callback();
  },
  Hono: (middleware, told) => {
    const app = new Hono();
    app.use(middleware);
    app.onError((error, c) => {
      told(error);
      return c.text("", 500);
    });
    return getRequestListener(app.fetch);
  },
};

async function errorOf(framework: string, middleware: Any): Promise<Error> {
  const errors: Error[] = [];
  const app = frameworks[framework]?.(middleware, (error) => errors.push(error)) as App;
  expect((await exchange(app, [{}, {}])).map(({ status }) => status)).toEqual([500, 500]);
  expect(errors).toHaveLength(2);
  expect(errors[1]?.message).toBe(errors[0]?.message);
  return errors[0] as Error;
}

// A window that no midnight ends.
const limit = { limit: 2, window: "365d" } as const;
const adapters: Record<string, { rateLimit: Any; takes: string; module: string }> = {
  Express: { ...onExpress, takes: "a request of Express", module: "@floodgate/express" },
  Koa: { ...onKoa, takes: "a context of Koa", module: "@floodgate/koa" },
  Hono: { ...onHono, takes: "a context of Hono", module: "@floodgate/hono" },
};

describe.each(Object.entries(adapters))("the middleware for %s", (ours, { rateLimit, takes }) => {
  for (const [framework, { takes: given, module }] of Object.entries(adapters).filter(([name]) => name !== ours)) {
    // Without a key of its own it fails early; with one and without headers, late or never.
    for (const [kind, more] of [
      ["by address", {}],
      ["by a key, without headers", { key: "global", headers: false }],
    ] as const) {
      it(`names ${framework} and what to import when it is mounted there, ${kind}`, async () => {
        expect(await errorOf(framework, rateLimit({ ...limit, ...more }))).toMatchObject({
          code: "FLOODGATE_FOREIGN_REQUEST",
          message: `This rateLimit takes ${takes}, but was given ${given}. Write import { rateLimit } from "${module}".`,
        });
      });
    }
  }

  it("is to be called before it is mounted, which the error says", async () => {
    expect(await errorOf(ours, rateLimit)).toMatchObject({
      code: "FLOODGATE_INVALID_OPTION",
      message: `rateLimit takes an object of options, but was given ${takes}. Write app.use(rateLimit({ limit: 100, window: "1m" })).`,
    });
  });
});

/** What Fastify answers to five requests, each with another forwarded address, and the codes of the warnings. */
async function viaFastify(app: FastifyInstance, codes: string[]): Promise<unknown[]> {
  await app.ready();
  const replies = await exchange(
    app.routing,
    [1, 2, 3, 4, 5].map((last) => ({ headers: { "x-forwarded-for": `192.0.2.${last}, 198.51.100.7` } })),
  );
  const codeOf = (body: string) => /"code":"(\w+)"/.exec(body)?.[1];
  return [...replies.map(({ status, body }) => codeOf(body) ?? status), ...codes];
}

async function fastifyApp(trustProxy: boolean | string, plugin: Any, more: object = {}) {
  const codes: string[] = [];
  const onEvent: onExpress.EventListener = (event) => void (event.type === "warning" && codes.push(event.code));
  const app = Fastify({ trustProxy });
  await app.register(plugin);
  (app as Any).use(onExpress.rateLimit({ ...limit, onEvent, ...more }));
  app.get("/", async () => "Hello");
  return { app, codes };
}

describe("Fastify with @fastify/express", () => {
  it("counts the clients that `clientIp` tells", async () => {
    const { app, codes } = await fastifyApp(true, fastifyExpress, { clientIp: { trustedHops: 1 } });
    expect(await viaFastify(app, codes)).toEqual([200, 200, 429, 429, 429]);
  });

  it.each([true, "127.0.0.1"])(
    "with trustProxy: %j, an address that Fastify has read is an error without `clientIp`",
    async (trustProxy) => {
      const { app, codes } = await fastifyApp(trustProxy, fastifyExpress);
      expect(await viaFastify(app, codes)).toEqual(Array(5).fill("FLOODGATE_FORGEABLE_CLIENT_IP"));
    },
  );

  it.each([undefined, 1])("without trustProxy, all are one client, and a warning says so: Express's setting is %j", async (trust) => {
    const { app, codes } = await fastifyApp(false, fastifyExpress);
    if (trust !== undefined) (app as Any).express.set("trust proxy", trust);
    expect(await viaFastify(app, codes)).toEqual([200, 200, 429, 429, 429, "FLOODGATE_MISSING_PROXY_SETTING"]);
  });
});

// Fastify with find-my-way below 9.10.2 serves it as `/login`; a newer one answers 400.
it("with @fastify/express, a `*` in place of the slash evades no rule", async () => {
  const rules = [{ name: "login", policy: onExpress.fixedWindow({ limit: 9, window: "1d" }), match: { path: "/login" } }];
  const app = Fastify();
  await app.register(fastifyExpress);
  (app as Any).use(onExpress.rateLimit({ rules }));
  app.get("/login", async () => "Hello");
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const asked = request({ host: "127.0.0.1", port, path: "*login", agent: false }).end();
  const [{ statusCode, headers }] = await once(asked, "response");
  expect(statusCode === 400 ? "not served" : headers["ratelimit"]).toMatch(/^not served$|"login"/);
  await app.close();
});

it("with @fastify/middie, requests are Node's, and the error says what to use", async () => {
  const { app, codes } = await fastifyApp(false, middie, { key: "global", headers: false });
  expect(await viaFastify(app, codes)).toEqual(Array(5).fill("FLOODGATE_FOREIGN_REQUEST"));
  const [{ body = "" } = {}] = await exchange(app.routing, [{}]);
  expect(JSON.parse(body).message).toMatch(
    /given a request of Node, as connect, polka and @fastify\/middie pass it\. Write .*@floodgate\/node/,
  );
});

it("as a hook of Fastify, the error names Fastify's request", async () => {
  const app = Fastify();
  app.addHook("onRequest", onExpress.rateLimit(limit) as Any);
  app.get("/", async () => "Hello");
  expect(await viaFastify(app, [])).toEqual(Array(5).fill("FLOODGATE_FOREIGN_REQUEST"));
});

class Routes {
  hello() {
    return "Hello";
  }
}
Get()(Routes.prototype, "hello", Object.getOwnPropertyDescriptor(Routes.prototype, "hello") as Any);
Controller()(Routes);
class AppModule {}
Module({ controllers: [Routes] })(AppModule);

describe("NestJS", () => {
  const requests = [1, 2, 3, 4, 5].map((last) => ({ headers: { "x-forwarded-for": `192.0.2.${last}` } }));

  it.each([
    [true, Array(5).fill(500), []],
    [1, Array(5).fill(200), []],
    [undefined, [200, 200, 429, 429, 429], ["FLOODGATE_MISSING_PROXY_SETTING"]],
  ])("on Express, follows Express's `trust proxy`: %j", async (trust, statuses, warnings) => {
    const codes: string[] = [];
    const app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: false });
    if (trust !== undefined) app.set("trust proxy", trust);
    app.use(onExpress.rateLimit({ ...limit, onEvent: (event) => void (event.type === "warning" && codes.push(event.code)) }));
    await app.init();
    expect((await exchange(app.getHttpAdapter().getInstance(), requests)).map(({ status }) => status)).toEqual(statuses);
    expect(codes).toEqual(warnings);
  });

  it("on Fastify passes Node's requests, and logs the error that says what to use", async () => {
    const logged: string[] = [];
    const log = (message: Any) => void logged.push(`${message?.message ?? message}`);
    const none = () => undefined;
    const app = await NestFactory.create(AppModule, new FastifyAdapter(), { logger: { log: none, warn: none, error: log } });
    app.use(onExpress.rateLimit(limit));
    await app.init();
    const fastify = app.getHttpAdapter().getInstance();
    await fastify.ready();
    expect((await exchange(fastify.routing, [{}])).map(({ status }) => status)).toEqual([500]);
    expect(logged.join("\n")).toMatch(/a request of Node, .* In NestJS use @floodgate\/nestjs\./);
  });
});
