import { createServer } from "node:http";
import { invalidOption } from "@floodgate/core/rules";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { isUnix } from "../config/address.js";
import { listen, type RunningServer } from "../service/listen.js";
import type { Service } from "../service/service.js";
import { readJson } from "./body.js";
import { openApi, operations, pathOf } from "./openapi.js";
import { Operations } from "./operations.js";
import { Problem, problemOf } from "./problems.js";
import { tokenCheck } from "./tokens.js";

/**
 * Starts the JSON API. Undefined if it has no address.
 * @throws FloodgateError if other machines could use it without a token.
 */
export async function startApi(service: Service): Promise<RunningServer | undefined> {
  const { apiListen: address, apiTokenFile, apiSocketMode, closeMs } = service.settings;
  if (address === undefined) return undefined;
  const isToken = apiTokenFile === undefined ? undefined : tokenCheck(apiTokenFile, service.log);
  const isOpen = isToken === undefined && !isUnix(address);
  if (isOpen) {
    if (!ofThisMachine.test(address)) {
      throw invalidOption(
        `\`apiListen\` is ${address}, which other machines reach, but the API has no token: anyone could reset limits. Write --api-token-file /run/secrets/floodgate-api, or listen on 127.0.0.1 or a Unix socket.`,
      );
    }
    service.log.warn(
      { address },
      "The JSON API has no token, so every process of this machine may use it. Set apiTokenFile, or listen on a Unix socket",
    );
  }
  const app = apiApp(service, isToken, isOpen);
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 75_000 }, getRequestListener(app.fetch));
  return listen(server, "apiListen", address, closeMs, Number.parseInt(apiSocketMode, 8));
}

type TokenCheck = ReturnType<typeof tokenCheck>;

/** A host that only this machine reaches, and its port. */
const ofThisMachine = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/**
 * The JSON API as a Hono app.
 * @param isOpen whether anybody on this machine may use it, by TCP and without a token.
 */
function apiApp(service: Service, isToken: TokenCheck | undefined, isOpen: boolean): Hono {
  const app = new Hono();
  const own = new Operations(service);
  const description = openApi(isToken !== undefined);
  app.use(async (c, next) => {
    refuseBrowsers(c.req.raw, isOpen);
    await next();
    if (service.draining) c.res.headers.set("Connection", "close");
  });
  app.get("/v1/openapi.json", (c) => c.json(description));
  app.use(async (c, next) => {
    if (isToken !== undefined) checkToken(c.req.raw, isToken);
    await next();
  });
  for (const operation of operations) {
    const path = pathOf(operation);
    app.post(path, async (c) => {
      const { value, status, headers } = await own[operation.id](await readJson(c.req.raw));
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
      `There is no such address. The addresses are ${operations.map(pathOf).join(", ")} and /v1/openapi.json.`,
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

/**
 * Refuses requests that a browser sends for a web page: any page could otherwise post to this machine.
 * @param isOpen whether no token is needed. Then the host must be a name of this machine, because a page's own name may lead here too.
 * @throws Problem 403
 */
function refuseBrowsers({ headers }: Request, isOpen: boolean): void {
  // Not `sec-fetch-mode`, which the `fetch` of Node sends too.
  const sign = ["origin", "sec-fetch-site"].find((name) => headers.has(name));
  if (sign !== undefined) {
    throw new Problem(403, "browser", `The API is for programs, not for web pages, but the request has the header ${sign}.`);
  }
  const host = headers.get("host") ?? "";
  if (isOpen && !ofThisMachine.test(host)) {
    throw new Problem(
      403,
      "foreign-host",
      `Without a token, the API answers at localhost, 127.0.0.1 and [::1] only. Set apiTokenFile to use other names.`,
    );
  }
}

/** @throws Problem 401 */
function checkToken({ headers }: Request, isToken: TokenCheck): void {
  const given = headers.get("authorization") ?? "";
  const [, token] = /^bearer +(\S{1,4096})$/i.exec(given) ?? [];
  if (token !== undefined && isToken(token)) return;
  const reason = given === "" ? "The request has no token" : "The token is wrong";
  throw new Problem(401, "unauthorized", `${reason}. Write Authorization: Bearer <token>, with a line of the file of apiTokenFile.`, {
    headers: { "WWW-Authenticate": 'Bearer realm="floodgate"' },
  });
}
