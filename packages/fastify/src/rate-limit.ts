import { type Decision, FloodgateError, LimitedError } from "@floodgate/core";
import type { AppLimitOptions, RateLimitControls } from "@floodgate/core/adapter";
import {
  checkDecisionName,
  decideRequest,
  decisionOf,
  dropBody,
  ensureAnswer,
  functionOrNothing,
  listed,
  oneOf,
  passInTurn,
  RouteLimits,
  runOnLimited,
  withControls,
} from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import type { HookHandlerDoneFunction as Done, FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
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

type Limits = RouteLimits<FastifyRequest, FastifyRateLimitOptions<string>>;
type Limit = NonNullable<Limits["app"]>;

/** Where the configuration of a route has its limit. */
const routeLimit: unique symbol = Symbol("floodgate.limit");

/** The part of a route's options that tells its limit. A request shows them too. */
interface Route {
  config?: { readonly rateLimit?: RouteRateLimitOptions | false; [routeLimit]?: { readonly limits: Limits; made?: Limit } };
  method: string | readonly string[];
  url: string;
}

/** Fastify adds a route for HEAD to each for GET. Both are one route. */
const nameOf = (methods: readonly string[], url: string): string => `${methods.filter((one) => one !== "HEAD").join() || "GET"} ${url}`;

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
  /** Whether a limit waits for `preHandler`. */
  let hasLate = false;
  const check = (where: string, { hook = "onRequest", onLimited }: Limit["options"]): void => {
    oneOf(where, "hook", hook, hooks);
    if (onLimited !== "throw") functionOrNothing(where, "onLimited", onLimited, '(request, reply) => reply.send("Slow down")');
    hasLate ||= hook === "preHandler";
  };
  const limits = new RouteLimits("rateLimit", options as Limit["options"], ["hook", "onLimited"], fastifyReader, memoryStore, check);
  const { decisionName = "rateLimit" } = options;
  checkDecisionName(decisionName);

  const limitOf = ({ config, method, url }: Route): Limit | undefined => {
    if (!config?.rateLimit) return config?.rateLimit === false ? undefined : limits.app;
    // A route that was added before the plugin was loaded gets its limit at its first request.
    config[routeLimit] ??= { limits };
    const own = config[routeLimit];
    own.made ??= own.limits.of(config.rateLimit, nameOf([method].flat(), url));
    return own.made;
  };

  const plugin = async (app: FastifyInstance): Promise<void> => {
    if (typeof app.register !== "function") throw new FloodgateError("FLOODGATE_FOREIGN_REQUEST", mountedAsHook);
    const shown = Symbol.for(`floodgate.decision.${decisionName}`);
    function getter(this: FastifyRequest): Decision | undefined {
      return decisionOf(this, decisionName);
    }
    if (!app.hasDecorator(shown)) app.decorate(shown, true).decorateRequest(decisionName, { getter });
    app.addHook("onRoute", (route: Route) => {
      if (!route.config?.rateLimit) return;
      // The innermost plugin, whose options are the defaults, is the last. Several routes may be given one configuration, so it is copied.
      route.config = { ...route.config, [routeLimit]: { limits } };
      const added = { ...route };
      app.addHook("onReady", async () => void limitOf(added));
    });
    for (const hook of hooks) {
      app.addHook(hook as "onRequest", (request, reply, done) => {
        const limit = hook === "preHandler" && !hasLate ? undefined : limitOf(request.routeOptions as Route);
        if (limit === undefined || (limit.options.hook ?? "onRequest") !== hook) done();
        else apply(limit, request, reply, done);
      });
    }
    app.addHook("preClose", async () => limits.close());
  };

  const hook = (request: FastifyRequest, reply: FastifyReply, done: Done): void => {
    if (limits.app !== undefined) apply(limits.app, request, reply, done);
    else done(new FloodgateError("FLOODGATE_MISSING_LIMIT", "rateLimit: `hook` has no limit with `global: false`. Make one of its own."));
  };
  // Hooks of the plugin belong to the scope that registers it.
  const meta = {
    [Symbol.for("skip-override")]: true,
    [Symbol.for("fastify.display-name")]: "@floodgate/fastify",
    [Symbol.for("plugin-meta")]: { name: "@floodgate/fastify", fastify: "5.x" },
  };
  return withControls(Object.assign(plugin, { hook, ...meta }), limits);
}

const mountedAsHook = "@floodgate/fastify makes a plugin. Write app.register(limit), or for one route { onRequest: limit.hook }.";

/** Stands for a reply that the app has sent, or will send. */
const sentLater = Symbol("sent");

function apply({ limit, options: { onLimited } }: Limit, request: FastifyRequest, reply: FastifyReply, done: Done): void {
  decideRequest(limit, request, reply.raw, done, (_request, _response, _done, outcome) => {
    const { headers, action, status, body, decision } = outcome;
    for (const { name, value, list } of headers) reply.header(list || name, list ? listed(reply.getHeader(list), value) : value);
    const handler = (): unknown => {
      for (const one of [reply.code(status), reply.raw]) dropBody(one);
      if (onLimited === "throw") throw Object.assign(new LimitedError({ decision }), { statusCode: status });
      const given = onLimited?.(request, reply, decision);
      // A reply is a promise too, but one that must not be awaited here.
      return given === reply ? sentLater : given;
    };
    const finish = (answered: unknown): void => {
      if (answered === undefined)
        ensureAnswer(reply.raw, onLimited, limit.waiting, () => reply.header("content-type", body.contentType).send(body.text));
      else if (answered !== sentLater && !reply.sent) reply.send(answered);
    };
    if (action === "pass") passInTurn(reply.raw, outcome, limit.waiting, done);
    // Somebody, such as a timeout, may have answered while functions of the request were pending.
    else if (!reply.sent) runOnLimited(handler, done, finish);
  });
}
