import { createRequire } from "node:module";
import { FloodgateGuard, FloodgateModule } from "@floodgate/nestjs";
import { answer, listenerOf, rejection, twoHeaders, windowMs } from "./common.mjs";

// The copy of Nest that @floodgate/nestjs uses here: a workspace has one for each set of optional peers.
const load = createRequire(import.meta.resolve("@floodgate/nestjs/package.json"));
load("reflect-metadata");
const { Controller, Get, HttpException, Module } = load("@nestjs/common");
const { APP_GUARD, NestFactory } = load("@nestjs/core");
const { ThrottlerGuard, ThrottlerModule } = load("@nestjs/throttler");

class Hello {
  hello() {
    return answer;
  }
}
Controller()(Hello);
Get()(Hello.prototype, "hello", Object.getOwnPropertyDescriptor(Hello.prototype, "hello"));

/** The module and the guard that stand in front of the route. */
const guarded = (useClass, ...imports) => ({ imports, providers: [{ provide: APP_GUARD, useClass }] });

class NoopGuard {
  canActivate(context) {
    const response = context.switchToHttp().getResponse();
    for (const name in twoHeaders) response.setHeader(name, twoHeaders[name]);
    return true;
  }
}

const body = JSON.parse(rejection.body);

class RejectingGuard {
  canActivate(context) {
    const response = context.switchToHttp().getResponse();
    for (const name in rejection.headers) response.setHeader(name, rejection.headers[name]);
    throw new HttpException(body, 429);
  }
}

const subject = {
  noop: guarded(NoopGuard),
  rejectingNoop: guarded(RejectingGuard),
  rateLimit: (options) => guarded(FloodgateGuard, FloodgateModule.forRoot(options)),
  peer: (limit) => guarded(ThrottlerGuard, ThrottlerModule.forRoot([{ ttl: windowMs, limit }])),
};

export const listener = listenerOf(subject, async (limit) => {
  class App {}
  Module({ controllers: [Hello], ...limit })(App);
  const app = await NestFactory.create(App, { logger: false, abortOnError: false });
  await app.init();
  return app.getHttpAdapter().getInstance();
});
