import fastifyRateLimit from "@fastify/rate-limit";
import { rateLimit } from "@floodgate/fastify";
import Fastify from "fastify";
import { answer, listenerOf, rejection, twoHeaders, windowMs } from "./common.mjs";

/** A plugin whose hook belongs to the scope that registers it. */
const hooked = (hook) => Object.assign(async (app) => void app.addHook("onRequest", hook), { [Symbol.for("skip-override")]: true });

const noop = hooked((_request, reply, done) => {
  for (const name in twoHeaders) reply.header(name, twoHeaders[name]);
  done();
});

const rejectingNoop = hooked((_request, reply) => {
  reply.code(429);
  for (const name in rejection.headers) reply.header(name, rejection.headers[name]);
  reply.send(rejection.body);
});

const peer = (max) => Object.assign((app) => fastifyRateLimit(app, { max, timeWindow: windowMs }), { [Symbol.for("skip-override")]: true });

export const listener = listenerOf({ noop, rejectingNoop, rateLimit, peer }, async (limit) => {
  const app = Fastify();
  if (limit !== undefined) await app.register(limit);
  app.get("/", async () => answer);
  await app.ready();
  return app.routing;
});
