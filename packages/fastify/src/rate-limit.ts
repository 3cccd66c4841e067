import { type Decision, FloodgateError, LimitedError } from "@floodgate/core";
import {
  type AppLimitOptions,
  decideRequest,
  decisionOf,
  functionOrNothing,
  type Outcome,
  oneOf,
  passInTurn,
  type RateLimitControls,
  type RouteLimit,
  RouteLimits,
  runOnLimited,
} from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { fastifyReader } from "./request.js";

declare module "fastify" {
  interface FastifyRequest {
    /**
     * The decision of the last rate limit of this request; undefined if none applied. Declare another `decisionName` the same way:
     * `declare module "fastify" { interface FastifyRequest { quota?: Decision } }`.
     */
    rateLimit?: Decision;
  }
  interface FastifyContextConfig {
    /** The route's own options, over those of the plugin. Its requests have a count of their own. `false` turns the limit off. */
    rateLimit?: RouteRateLimitOptions | false;
  }
}

const hooks = ["onRequest", "preHandler"] as const;

export interface FastifyRateLimitOptions<Own extends string = never> extends AppLimitOptions<FastifyRequest, Own> {
  /** When a request is counted. `"preHandler"` if the key needs the parsed body. Default `"onRequest"`. */
  hook?: (typeof hooks)[number];
  /**
   * Answers a rejected request in place of the problem+json body. The headers and the status (429) are set already. Like a route's handler,
   * it returns what to send, or sends it and returns the reply. If it returns undefined and has sent nothing, the usual body is sent.
   * `"throw"` passes a `LimitedError` to the app's error handler.
   */
  onLimited?: "throw" | ((request: FastifyRequest, reply: FastifyReply, decision: Decision | undefined) => unknown);
}

/** A route's options. What they leave out is as in the plugin's. */
export type RouteRateLimitOptions = Omit<FastifyRateLimitOptions<string>, "global" | "decisionName">;

/** A Fastify plugin with its controls. */
export interface RateLimitPlugin extends FastifyPluginAsync, RateLimitControls {
  /** The limit as a hook of one route, or of a not-found handler: `{ preHandler: limit.hook }`. */
  hook(request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void;
}

type Limit = RouteLimit<FastifyRequest, FastifyRateLimitOptions<string>>;
type Done = (error?: Error) => void;
type OnLimited = FastifyRateLimitOptions["onLimited"];

/** Stands for a reply that the app has sent, or will send. */
const sentLater = Symbol("sent");

/** Where the configuration of a route has its limit. */
const routeLimit: unique symbol = Symbol("floodgate.limit");

/** Makes the limit of a route of its options. */
type Maker = (own: RouteRateLimitOptions) => Limit;

/** The part of a route's options that tells its limit. A request shows them too. */
interface Route {
  config?: { readonly rateLimit?: RouteRateLimitOptions | false; [routeLimit]?: { make: Maker; made?: Limit } };
  method: string | readonly string[];
  url: string;
}

/**
 * Makes a Fastify plugin that limits the routes of its scope and below, and requests that no route serves: by default per client IP, in
 * memory.
 *
 *     await app.register(rateLimit({ limit: 100, window: "1m" }));
 *     app.post("/login", { config: { rateLimit: { limit: 5, window: "15m" } } }, login);
 *
 * @throws FloodgateError if an option is invalid: when called. For a route's options: when the app gets ready.
 */
export function rateLimit<const Own extends string = never>(options: FastifyRateLimitOptions<Own>): RateLimitPlugin {
  const limits = new RouteLimits("rateLimit", options as Limit["options"], ["hook", "onLimited"], fastifyReader, memoryStore);
  /** Whether a limit waits for `preHandler`. */
  let hasLate = false;
  const check = ({ hook = "onRequest", onLimited }: Limit["options"]): void => {
    oneOf("rateLimit", "hook", hook, hooks);
    if (onLimited !== "throw") functionOrNothing("rateLimit", "onLimited", onLimited, '(request, reply) => reply.send("Slow down")');
    hasLate ||= hook === "preHandler";
  };
  check(options as Limit["options"]);

  const makerOf =
    ({ method, url }: Route): Maker =>
    (own) => {
      // Fastify adds a route for HEAD to each for GET. Both are one route.
      const methods = new Set([method].flat().map((one) => (one === "HEAD" ? "GET" : one)));
      const limit = limits.of(own, `${[...methods].join()} ${url}`);
      check(limit.options);
      return limit;
    };

  const limitOf = (route: Route): Limit | undefined => {
    const { config } = route;
    if (!config?.rateLimit) return config?.rateLimit === false ? undefined : limits.app;
    // A route that was added before the plugin was loaded gets its limit at its first request.
    config[routeLimit] ??= { make: makerOf(route) };
    const own = config[routeLimit];
    own.made ??= own.make(config.rateLimit);
    return own.made;
  };

  const decide = (request: FastifyRequest, reply: FastifyReply, done: Done, { limit, options: { onLimited } }: Limit): void =>
    decideRequest(limit, request, reply, done, (request, reply, done, outcome) => {
      for (const { name, value, list } of outcome.headers) {
        const before = list ? reply.getHeader(name) : undefined;
        reply.header(name, before === undefined ? value : `${before}, ${value}`);
      }
      if (outcome.action === "pass") passInTurn(reply.raw, outcome, limits.waiting, done);
      // Somebody, such as a timeout, may have answered while functions of the request were pending.
      else if (!reply.sent) reject(request, reply.code(outcome.status), done, outcome, onLimited);
    });

  const reject = (request: FastifyRequest, reply: FastifyReply, done: Done, { body, decision }: Outcome, onLimited: OnLimited): void => {
    const send = (): void => void reply.header("content-type", body.contentType).send(body.text);
    if (onLimited === undefined) send();
    else if (onLimited === "throw") done(Object.assign(new LimitedError({ decision }), { statusCode: reply.statusCode }));
    else {
      const handler = (): unknown => {
        const given = onLimited(request, reply, decision);
        // It is a promise too, but one that must not be awaited here.
        return given === reply ? sentLater : given;
      };
      runOnLimited(handler, done, (answered) => {
        if (answered === sentLater || reply.sent) return;
        if (answered !== undefined) reply.send(answered);
        else if (onLimited.length < 2) send();
        else limits.waiting.answerInTime(reply.raw, send);
      });
    }
  };

  /** Applies the limit of a request's route, if the limit belongs to this hook. */
  const applyIn =
    (hook: (typeof hooks)[number]) =>
    (request: FastifyRequest, reply: FastifyReply, done: Done): void => {
      const limit = hook === "preHandler" && !hasLate ? undefined : limitOf(request.routeOptions as Route);
      if (limit === undefined || (limit.options.hook ?? "onRequest") !== hook) done();
      else decide(request, reply, done, limit);
    };

  const plugin = async (app: FastifyInstance): Promise<void> => {
    const name = limits.app?.limit.decisionName ?? "rateLimit";
    const shown = Symbol.for(`floodgate.decision.${name}`);
    if (!app.hasRequestDecorator(shown)) {
      for (const property of [shown, name]) {
        app.decorateRequest(property, {
          getter() {
            return decisionOf(this, name);
          },
        });
      }
    }
    const routes: Route[] = [];
    app.addHook("onRoute", (options) => {
      const route = options as Route;
      if (!route.config?.rateLimit) return;
      // The options of the innermost plugin are the defaults. Several routes may be given one configuration, so it is copied.
      if (route.config[routeLimit] === undefined) route.config = { ...route.config, [routeLimit]: { make: makerOf(route) } };
      else route.config[routeLimit].make = makerOf(route);
      routes.push({ ...route });
    });
    app.addHook("onReady", async () => routes.forEach(limitOf));
    for (const hook of hooks) app.addHook(hook, applyIn(hook));
    app.addHook("preClose", async () => limits.close());
  };

  const properties = {
    hook(request: FastifyRequest, reply: FastifyReply, done: Done): void {
      const message = "rateLimit: with `global: false` there is no limit for `hook`. Make one of its own.";
      if (limits.app === undefined) done(new FloodgateError("FLOODGATE_MISSING_LIMIT", message));
      else decide(request, reply, done, limits.app);
    },
    close: () => limits.close(),
    // Hooks of the plugin belong to the scope that registers it.
    [Symbol.for("skip-override")]: true,
    [Symbol.for("fastify.display-name")]: "@floodgate/fastify",
    [Symbol.for("plugin-meta")]: { name: "@floodgate/fastify", fastify: "5.x" },
  };
  return Object.defineProperties(Object.assign(plugin, properties), {
    limiter: { get: () => limits.limiter, enumerable: true },
    limiters: { get: () => limits.limiters, enumerable: true },
  }) as unknown as RateLimitPlugin;
}
