import { Hono } from "hono";
import type { Service } from "../service/service.js";
import { checkToken, refuseBrowsers } from "./access.js";
import { readJson } from "./body.js";
import { openApi, operations } from "./openapi.js";
import { Operations } from "./operations.js";
import { Problem, problemOf } from "./problems.js";
import type { TokenFile } from "./tokens.js";

/** Who may use the API. */
export interface Access {
  readonly tokens: TokenFile | undefined;
  /** Whether anybody on this machine may use it, by TCP and without a token. */
  readonly isOpen: boolean;
}

/** The JSON API as a Hono app. */
export function apiApp(service: Service, { tokens, isOpen }: Access): Hono {
  const app = new Hono();
  const own = new Operations(service);
  const description = openApi(tokens !== undefined);
  app.use(async (c, next) => {
    refuseBrowsers(c.req.raw, isOpen);
    await next();
    if (service.draining) c.res.headers.set("Connection", "close");
  });
  app.get("/v1/openapi.json", (c) => c.json(description));
  app.use(async (c, next) => {
    if (tokens !== undefined) checkToken(c.req.raw, tokens);
    await next();
  });
  for (const { path, id } of operations) {
    app.post(path, async (c) => {
      const { value, status, headers } = await own[id](await readJson(c.req.raw));
      c.header("Cache-Control", "no-store");
      return value === undefined ? c.body(null, 204) : c.json(value, status ?? 200, headers);
    });
    app.all(path, (c) => {
      throw new Problem(405, "method-not-allowed", `${path} takes POST, but the method was ${c.req.method}.`, {
        headers: { Allow: "POST" },
      });
    });
  }
  app.notFound(() => {
    throw new Problem(
      404,
      "not-found",
      `There is no such address. The addresses are ${operations.map(({ path }) => path).join(", ")} and /v1/openapi.json.`,
    );
  });
  app.onError((error) => {
    let problem = problemOf(error);
    if (problem === undefined) {
      service.log.error({ error: String(error) }, "The JSON API has failed");
      problem = new Problem(500, "failed", "The request could not be handled. The log of the server says why.");
    }
    return Response.json(problem.body, {
      status: problem.status,
      headers: { "Content-Type": "application/problem+json", "Cache-Control": "no-store", ...problem.headers },
    });
  });
  return app;
}
