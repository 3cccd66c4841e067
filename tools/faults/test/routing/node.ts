import type { RequestListener } from "node:http";
import { rateLimit } from "@floodgate/node";
import findMyWay from "find-my-way";
import polka from "polka";
import restana from "restana";
import Router from "router";
import type { Framework, Parts } from "./framework.js";
import { handlerName, joined, type Level, rewritten } from "./plan.js";

// biome-ignore lint/suspicious/noExplicitAny: these have much in common, and no common type
type Routes = any;
interface Message {
  url: string;
  method: string;
}
type Handle = (request: Message, response: { end(): void }, next: () => void) => void;

interface Kind {
  make(): Routes;
  listenerOf(app: Routes): RequestListener;
  wildcard: string;
}

function fill(kind: Kind, router: Routes, level: Level, depth: number, parts: Parts, limit: unknown): void {
  for (const rewrite of level.rewrites) {
    router.use(((request, _response, next) => {
      request.url = rewritten(request.url, rewrite);
      next();
    }) satisfies Handle);
  }
  if (level.limited) router.use(limit);
  level.routes.forEach(({ pattern, method }, i) => {
    const serve: Handle = (_request, response) => {
      parts.reach(handlerName(depth, i));
      response.end();
    };
    const path = pattern.replace("*", kind.wildcard);
    if (method === "ALL") router.all(path, serve);
    else router[method === "GET" ? "get" : "post"](path, serve);
  });
  for (const one of level.below) {
    const inner = kind.make();
    fill(kind, inner, one, depth + 1, parts, limit);
    router.use(one.mount, inner);
  }
}

function framework(name: string, mounts: readonly string[], kind: Kind): Framework {
  return {
    name,
    abilities: { mounts, files: false, rewrites: true },
    http2: true,
    overcounts: name !== "router",
    // The routes of restana are regular expressions.
    ...(name === "restana" && { otherwise: /[.$]/ }),
    build(plan, parts) {
      const app = kind.make();
      fill(kind, app, plan, 0, parts, rateLimit(parts.limit as never));
      return kind.listenerOf(app);
    },
  };
}

const end: Handle = (_request, response) => response.end();

/** A router without mounts, on a server of Node. @param rewrite what the server does to a target after the limit. */
const alone = (name: string, rewrite = (target: string) => target): Framework => ({
  name,
  abilities: { mounts: ["/api", "/users/:id", "/:x", "/v1", "/items", "/Api"], files: false, rewrites: false },
  http2: true,
  overcounts: true,
  otherwise: /%/,
  build(plan, parts) {
    const router = findMyWay({ defaultRoute: (_request, response) => response.end() });
    const limit = rateLimit(parts.limit as never);
    // Only limits around all routes: it runs no middlewares.
    if (!plan.limited) return undefined;
    try {
      for (let level: Level | undefined = plan, base = "", depth = 0; level !== undefined; level = level.below[0], depth++) {
        base += level.mount;
        level.routes.forEach(({ pattern, method }, i) => {
          router.on(method === "ALL" ? ["GET", "HEAD", "POST"] : method, joined(`${base}/`, pattern), (_request, response, { id }) => {
            // It serves the home page by `/:id`, but a rule for `/:id` does not count the home page.
            if (id !== "" || base !== "") parts.reach(handlerName(depth, i));
            response.end();
          });
        });
      }
    } catch {
      return undefined;
    }
    return (request, response) => {
      limit(request, response, () => {
        request.url = rewrite(request.url as string);
        router.lookup(request, response);
      });
    };
  },
});

/** As Astro does. */
function decodedToTheEnd(target: string): string {
  const [path = "", ...query] = target.split("?");
  let last = path;
  try {
    for (let next = decodeURI(last); next !== last; next = decodeURI(next)) last = next;
  } catch {
    // A `%` that encodes nothing is left.
  }
  return [last, ...query].join("?");
}

export const node: readonly Framework[] = [
  alone("find-my-way"),
  alone("find-my-way, after a path was decoded to the end", decodedToTheEnd),
  framework("router", ["/api", "/users/:id", "/:x", "/v1", "/items", "/Api"], {
    make: () => Router(),
    listenerOf: (app) => (request, response) => app(request, response, () => response.end()),
    wildcard: "*rest",
  }),
  framework("polka", ["/api", "/v1", "/items"], {
    make: () =>
      polka({ onNoMatch: end as never, onError: ((_e: unknown, _r: unknown, response: { end(): void }) => response.end()) as never }),
    listenerOf: (app) => app.handler,
    wildcard: "*",
  }),
  framework("restana", ["/api", "/users/:id", "/v1", "/items"], {
    make: () =>
      restana({
        defaultRoute: end as never,
        errorHandler: ((_e: unknown, _r: unknown, response: { end(): void }) => response.end()) as never,
      }),
    listenerOf: (app) => app.callback(),
    wildcard: "*",
  }),
];
