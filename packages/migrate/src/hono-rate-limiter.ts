import type { Node } from "@babel/types";
import { type OtherAnswer, rewriteAnswer } from "./answer.js";
import { rewriteReads } from "./app-code.js";
import { rewriteHeaders } from "./headers.js";
import { rewriteKeyFunction, rewriteLimit, rewriteRefunds, rewriteSkip } from "./middleware.js";
import { constantOf, propertyName, walk } from "./nodes.js";
import type { MiddlewareRules, Rewriting } from "./rewriting.js";
import type { Call } from "./source.js";

export const rules: MiddlewareRules = {
  modules: ["hono-rate-limiter", "@hono-rate-limiter/redis", "@hono-rate-limiter/cloudflare"],
  ours: "@floodgate/hono",
  builders: { "hono-rate-limiter": ["rateLimiter"] },
  rewrite,
  rewriteReaders,
};

const whatTo: Readonly<Record<string, string>> = {
  binding: "Floodgate does not ask Cloudflare's rate limit binding. Its own memory store works on Workers, one for each isolate.",
  requestStorePropertyName: "The middleware has a `limiter` with `reset` and `peek`. Remove it.",
};

function rewrite(rewriting: Rewriting, call: Call): void {
  const options = rewriting.optionsOf(call);
  if (options === undefined) return;
  rewriteLimit(rewriting, options, { limit: options.take("limit"), window: options.take("windowMs") }, { limit: 5, windowMs: 60_000 });
  options.take("requestPropertyName")?.rename("decisionName");
  rewriteAnswer(rewriting, options, ["c"], onLimited);
  rewriteKeyFunction(rewriting, options, options.take("keyGenerator"), () => false);
  rewriteSkip(rewriting, options.take("skip"), "c");
  rewriteRefunds(rewriting, options, ([c]) => c && `${c}.res.status`);
  const store = options.take("store");
  const made = store?.value;
  if (made?.type === "NewExpression" && made.callee.type === "Identifier" && made.callee.name === "MemoryStore") options.remove(store);
  else store?.handle("Write `store: redisStore(client)` and a `name`, or another store of docs/choosing-a-store.md.");
  rewriting.nameAmongSeveral(call, options);
  rewriteHeaders(options, "draft-6", false);
  rewriting.finish(options, whatTo);
}

function onLimited({ message, text, status }: OtherAnswer): string | undefined {
  const method = message === undefined || typeof message.constant === "string" ? "text" : "json";
  return text && `(c) => c.${method}(${text}, ${status})`;
}

/** What handlers read: `c.get("rateLimit").resetTime`, `c.get("rateLimitStore")`. */
function rewriteReaders({ source }: Rewriting): void {
  const isGet = (node: Node, name: string): boolean =>
    node.type === "CallExpression" && propertyName(node.callee) === "get" && constantOf(node.arguments[0] ?? node) === name;
  rewriteReads(source, (node) => isGet(node, "rateLimit"));
  walk(source.program, (node) => {
    if (isGet(node, "rateLimitStore")) source.handle(node, "Write limit.limiter.reset(key), where `limit` is the middleware.");
  });
}
