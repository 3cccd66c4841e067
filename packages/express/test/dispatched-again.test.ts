import { fixedWindow } from "@floodgate/core";
import express5, { type Express, type RequestHandler } from "express";
import express4 from "express4";
import supertest from "supertest";
import { describe, expect, it } from "vitest";
import { type RateLimitMiddleware, rateLimit } from "../src/index.js";
import { type ExpressModule, listening } from "./express-app.js";

const login: RequestHandler = (_request, response) => void response.json({ ok: true });

/** Ways to serve `/login` with the handler of `/v1/login`. */
const rewrites: [string, (app: Express, limit: RateLimitMiddleware) => unknown][] = [
  [
    "a request that the app dispatches again",
    (app, limit) => {
      app.use(limit).get("/login", (request, response) => {
        request.url = "/v1/login";
        (app as unknown as { handle: RequestHandler }).handle(request, response, () => undefined);
      });
    },
  ],
  [
    "a request that is rewritten before it passes the limit again",
    (app, limit) => {
      app.use(limit).use((request, _response, next) => {
        request.url = "/v1/login";
        next();
      });
      app.use(limit);
    },
  ],
];

describe.each<[string, ExpressModule]>([
  ["Express 5", express5],
  ["Express 4", express4 as unknown as ExpressModule],
])("a request that an app of %s", (_, express) => {
  it.each(rewrites)("%s counts under the rules for its new path, and once under all others", async (_how, rewrite) => {
    const limit = rateLimit({
      rules: [
        { name: "all", policy: fixedWindow({ limit: 5, window: "365d" }), key: "global" },
        { name: "login", policy: fixedWindow({ limit: 2, window: "365d" }), key: "global", match: { path: "/v1/login" } },
      ],
    });
    const app = express();
    rewrite(app, limit);
    app.get("/v1/login", login);
    const server = await listening(app);
    try {
      const statuses = [];
      for (let i = 0; i < 4; i++) statuses.push((await supertest(server).get("/login")).status);
      expect(statuses).toEqual([200, 200, 429, 429]);
      expect(limit.limiters.get("all")?.peek("global")).toMatchObject({ remaining: 1 });
      const { headers } = await supertest(server).get("/login");
      expect([headers["ratelimit-policy"], headers["ratelimit"]]).toEqual([
        expect.stringMatching(/^"all";.*, "login";/),
        expect.stringMatching(/^"all";r=0;.*, "login";r=0;/),
      ]);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
