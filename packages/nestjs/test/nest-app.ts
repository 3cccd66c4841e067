import type { Server } from "node:http";
import {
  type Adapter,
  andThen,
  forRequests,
  type Handler,
  type LimitSetup,
  type RequestView,
  type Step,
} from "@floodgate/conformance/adapter";
import { decisionOf } from "@floodgate/core/adapter";
import { memoryStore } from "@floodgate/store-memory";
import {
  All,
  type ArgumentsHost,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  HttpCode,
  HttpException,
  type INestApplication,
  Module,
  NotFoundException,
  Post,
  Req,
  Res,
  type Type,
  UseGuards,
} from "@nestjs/common";
import { BaseExceptionFilter, DiscoveryModule, DiscoveryService, NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";
import { send as sendInExpress } from "../../express/test/express-app.js";
import { send as sendInFastify } from "../../fastify/test/fastify-app.js";
import { Floodgate, FloodgateGuard, type FloodgateModuleOptions } from "../src/index.js";
import { isNest11, problemType } from "./serving.js";

// biome-ignore lint/suspicious/noExplicitAny: a request and a response of either platform
type Any = any;

const viewOf = (request: Any): RequestView => ({
  method: request.method,
  path: request.originalUrl,
  body: request.body,
  header: (name) => request.headers[name.toLowerCase()],
  decision: (name) => decisionOf(request, name),
});

const view = (context: ExecutionContext): RequestView => viewOf(context.switchToHttp().getRequest());

/** Describes Nest on one platform to the conformance suite. */
export function nestAdapter(name: string, platform: "express" | "fastify"): Adapter {
  const send = (platform === "express" ? sendInExpress : sendInFastify) as (response: Any, reply: Any) => void;

  const optionsOf = (setup: LimitSetup): FloodgateModuleOptions => {
    const { onLimited } = setup;
    const options = forRequests<ExecutionContext>(setup, view) as FloodgateModuleOptions;
    if (typeof onLimited !== "function") return onLimited === undefined ? options : { ...options, onLimited };
    return {
      ...options,
      onLimited: (context, decision) =>
        andThen(onLimited(view(context), decision), (reply) => {
          if (reply === undefined) return;
          const { status = 429, body, raw } = reply;
          if (raw !== true && typeof body === "object" && body !== null) throw new HttpException(body, status);
          send(context.switchToHttp().getResponse(), { ...reply, status });
        }),
    };
  };

  /** The global guards, and a controller for each route. Limits in a router guard its routes. */
  function build(
    steps: readonly Step[],
    guards: readonly CanActivate[],
    fallback: Handler,
    prefix = "",
    outer: readonly CanActivate[] = [],
  ): { global: CanActivate[]; controllers: Type[] } {
    const global: CanActivate[] = [];
    const controllers: Type[] = [];
    const inner = [...outer];
    for (const step of steps) {
      if ("limit" in step) {
        const guard = guards[step.limit] as CanActivate;
        const { path } = step;
        const isUnder = ({ originalUrl }: Any): boolean => path === undefined || originalUrl.split("?")[0].startsWith(path);
        const here: CanActivate = { canActivate: (context) => !isUnder(context.switchToHttp().getRequest()) || guard.canActivate(context) };
        (prefix === "" ? global : inner).push(here);
      } else if ("router" in step) {
        const below = build(step.steps, guards, fallback, prefix + step.router, inner);
        controllers.push(...below.controllers);
      } else if ("route" in step) {
        const { handler = fallback, method, route } = step;
        const own = (step.limits ?? []).map((limit) => guards[limit] as CanActivate);

        @Controller()
        class Routes {
          @(method === "post" ? Post(prefix + route) : Get(prefix + route))
          @HttpCode(200)
          @UseGuards(...inner, ...own)
          async handle(@Req() request: Any, @Res() response: Any): Promise<void> {
            send(response, await handler(viewOf(request), decisionOf(request)));
          }
        }
        controllers.push(Routes);
      }
    }
    return { global, controllers };
  }

  return {
    name,
    proxies: ["one hop", "forgeable"],
    outer: true,
    seesSending: true,
    // Nest 11 sends an error on Fastify even if the response has begun.
    begins: !isNest11 || platform === "express",
    problemType,
    presets: true,
    routesAhead: true,
    // A store takes the memory of its most keys when it is made, which is slow for thousands of stores.
    store: (clock) => memoryStore({ clock, maxKeys: 10_000 }),
    async start({ limits: setups, anew, steps, proxy, host = "127.0.0.1", handler, onError, outer, begins, presets = {} }) {
      const floodgates: Floodgate[] = [];
      const guards = setups.map((_, i): CanActivate => ({ canActivate: (context) => guardOf(i).canActivate(context) }));
      let app: INestApplication;
      const made = new Map<number, FloodgateGuard>();
      const floodgateOf = (setup: LimitSetup): Floodgate => new Floodgate(optionsOf(setup), app.get(DiscoveryService));
      const guardOf = (i: number): FloodgateGuard => {
        const guard = made.get(i);
        return guard !== undefined && anew !== true ? guard : new FloodgateGuard(floodgateOf(setups[i] as LimitSetup));
      };
      const { global, controllers } = build(steps, guards, handler);

      @Controller()
      class Unknown {
        @All(platform === "express" ? "{*rest}" : "*")
        notFound(): void {
          throw new NotFoundException();
        }
      }
      @Module({ imports: [DiscoveryModule], controllers: [...controllers, Unknown] })
      class App {}

      const rewrite = (url: string): string =>
        steps.reduce(
          (path, step) => ("rewrite" in step && path.startsWith(`${step.rewrite}/`) ? step.to + path.slice(step.rewrite.length) : path),
          url,
        );
      const adapter =
        platform === "express"
          ? new ExpressAdapter()
          : new FastifyAdapter({
              trustProxy: proxy === "one hop" ? (_address: string, hop: number) => hop < 1 : proxy === "forgeable",
              rewriteUrl: ({ url = "/" }) => rewrite(url),
            });
      app = await NestFactory.create(App, adapter, { logger: false, abortOnError: false });
      setups.forEach((setup, i) => {
        const floodgate = floodgateOf(setup);
        floodgates.push(floodgate);
        made.set(i, new FloodgateGuard(floodgate));
      });
      if (platform === "express") {
        if (proxy !== undefined) adapter.getInstance().set("trust proxy", proxy === "forgeable" ? true : 1);
        app.use((request: Any, response: Any, next: () => void) => {
          request.url = rewrite(request.url);
          if (outer !== undefined) response.once("finish", () => outer((header) => response.get(header)));
          for (const name in presets) response.setHeader(name, presets[name] as string);
          if (begins === true) response.flushHeaders();
          next();
        });
      } else {
        // Without a parser Fastify answers with an error. This one reads nothing, as Express does.
        adapter.getInstance().addContentTypeParser("application/octet-stream", (_request: Any, _payload: Any, done: Any) => done(null));
        // Not async: until then, another listener may answer.
        adapter.getInstance().addHook("onRequest", (_request: Any, reply: Any, done: () => void) => {
          reply.headers(presets);
          for (const name in presets) reply.raw.setHeader(name, presets[name]);
          done();
        });
        if (begins === true) adapter.getInstance().addHook("onRequest", async (_request: Any, reply: Any) => reply.raw.flushHeaders());
        if (outer !== undefined) {
          adapter.getInstance().addHook("onResponse", async (_request: Any, reply: Any) => outer((header) => reply.getHeader(header)));
        }
      }

      class Errors extends BaseExceptionFilter {
        override catch(error: unknown, host: ArgumentsHost): void {
          if (!(error instanceof HttpException)) onError(error);
          super.catch(error instanceof HttpException ? error : new HttpException({}, 500), host);
        }
      }
      app.useGlobalFilters(new Errors(app.getHttpAdapter()));
      app.useGlobalGuards(...global);
      await app.listen(0, host);
      return { server: app.getHttpServer() as Server, limits: floodgates };
    },
  };
}
