import { headersOf } from "./headers.js";
import { rewriteHandler, rewriteKeyFunction, rewriteLimit, rewriteRefunds, rewriteSkip, takeAnswer } from "./middleware.js";
import { constantOf, propertyName, walk } from "./nodes.js";
import type { Options } from "./options.js";
import { type MiddlewareRules, type Rewriting, valueIn } from "./rewriting.js";
import type { Call } from "./source.js";

export const rules: MiddlewareRules = {
  modules: ["hono-rate-limiter"],
  ours: "@floodgate/hono",
  builders: ["rateLimiter"],
  rewrite,
  rewriteReaders,
};

const whatTo: Readonly<Record<string, string>> = {
  binding: "Floodgate does not ask Cloudflare's rate limit binding. Its own memory store works on Workers, one for each isolate.",
  requestStorePropertyName: "The middleware has a `limiter` with `reset` and `peek`. Remove it.",
};

function rewrite(rewriting: Rewriting, call: Call): void {
  const { source } = rewriting;
  const options = rewriting.optionsOf(call);
  if (options === undefined) return;
  rewriteLimit(rewriting, options, { limit: options.take("limit"), window: options.take("windowMs") }, { limit: 5, windowMs: 60_000 });
  const property = options.take("requestPropertyName");
  if (property !== undefined) options.rename(property, "decisionName");
  rewriteAnswer(rewriting, options);
  const key = options.take("keyGenerator");
  rewriteKeyFunction(rewriting, options, key, "c", () => false);
  rewriteSkip(source, options, options.take("skip"), "c");
  rewriteRefunds(source, options, ([c]) => (c === undefined ? [] : [`${c}.res.status`]));
  rewriteStore(rewriting, options);
  rewriting.nameAmongSeveral(call, options);
  headersOf(source, options, "draft-6", false);
  rewriting.finish(options, whatTo);
}

/** `message`, `statusCode` and `handler` become `body` or `onLimited`. */
function rewriteAnswer(rewriting: Rewriting, options: Options): void {
  const { source } = rewriting;
  const answer = takeAnswer(source, options);
  const { message, statusCode, handler, status, text } = answer;
  if (handler !== undefined) {
    const advice = "`onLimited` gets (c, decision), and neither `next` nor the options. Rewrite what uses them.";
    rewriteHandler(source, options, handler, answer, 1, advice);
    return;
  }
  if (statusCode !== undefined && status !== 429 && text !== undefined) {
    const isText = message === undefined || typeof constantOf(valueIn(message)) === "string";
    options.set(statusCode, `onLimited: (c) => c.${isText ? "text" : "json"}(${text}, ${source.text(valueIn(statusCode))})`);
    options.remove(message);
    return;
  }
  options.remove(statusCode);
  if (message === undefined) return;
  if (text !== undefined) options.rename(message, "body");
  else source.handle(message, "Write `onLimited: async (c) => c.text(...)`.");
}

function rewriteStore({ source }: Rewriting, options: Options): void {
  const store = options.take("store");
  if (store === undefined) return;
  const made = valueIn(store);
  const isMemory = made.type === "NewExpression" && made.callee.type === "Identifier" && made.callee.name === "MemoryStore";
  if (isMemory) options.remove(store);
  else
    source.handle(store, "Write `store: redisStore(client)`, with a client that speaks to Redis over TCP, or see docs/writing-a-store.md.");
}

/** What handlers read: `c.get("rateLimit").resetTime`, `c.get("rateLimitStore")`. */
function rewriteReaders({ source }: Rewriting): void {
  walk(source.program, (node, parent) => {
    if (node.type !== "CallExpression" || propertyName(node.callee) !== "get" || node.arguments[0]?.type !== "StringLiteral") return;
    const { value } = node.arguments[0];
    const member = parent && propertyName(parent);
    if (value === "rateLimitStore") source.handle(node, "Write limit.limiter.reset(key), where `limit` is the middleware.");
    else if (value === "rateLimit" && member === "resetTime") {
      source.handle(node, `Write new Date(Date.now() + ${source.text(node)}.resetAfterMs).`);
    } else if (value === "rateLimit" && member !== "limit" && member !== "remaining" && member !== "used") {
      source.handle(node, "This is a decision now: limit, used, remaining, retryAfterMs, resetAfterMs.");
    }
  });
}
