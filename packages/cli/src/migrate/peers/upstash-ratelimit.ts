import type { Node } from "@babel/types";
import { renameResult, type Use, usesOf } from "../limiter.js";
import { argument, bare, constantOf, propertyName } from "../nodes.js";
import type { Options } from "../options.js";
import { type PeerRules, type Rewriting, valueIn } from "../rewriting.js";
import { type Call, end, start } from "../source.js";
import { durationCode, parseMs } from "../write.js";

export const rules: PeerRules = {
  modules: ["@upstash/ratelimit"],
  ours: "@floodgate/core",
  builders: ["Ratelimit"],
  builds: "createLimiter",
  rewrite,
};

const whatTo: Readonly<Record<string, string>> = {
  enableProtection: 'Reject such clients before the limit, or call limiter.block(key, "1d"). Remove it.',
  dynamicLimits: "Write `rules` in a file or in Redis, which change while the server runs. Remove it.",
};

function rewrite(rewriting: Rewriting, call: Call): void {
  const { source } = rewriting;
  const options = rewriting.optionsOf(call, argument(call.node, 0));
  if (options === undefined) return;
  rewriteName(rewriting, call, options);
  rewritePolicy(rewriting, options);
  rewriteStore(rewriting, options);
  const timeout = options.take("timeout");
  if (timeout !== undefined) options.rename(timeout, "timeoutMs");
  for (const name of ["ephemeralCache", "analytics"]) {
    const property = options.take(name);
    options.remove(property);
    if (property !== undefined && name === "analytics" && constantOf(valueIn(property)) === true) {
      source.note(property, "`analytics` is removed: `onEvent`, the metrics and the dashboard show what is limited.");
    }
  }
  for (const use of usesOf(rewriting, call)) rewriteUse(rewriting, use);
  rewriting.finish(options, whatTo);
}

function rewriteName(rewriting: Rewriting, call: Call, options: Options): void {
  const prefix = options.take("prefix");
  const given = prefix === undefined ? undefined : constantOf(valueIn(prefix));
  if (prefix !== undefined && typeof given !== "string") {
    rewriting.source.handle(prefix, 'Write `name: "api"`.');
    return;
  }
  const name = `name: ${JSON.stringify(rewriting.nameFor(call, typeof given === "string" ? given : undefined))}`;
  if (prefix === undefined) options.add(name);
  else options.set(prefix, name);
}

/** `Ratelimit.slidingWindow(10, "10 s")` and its relatives become a `policy`. */
function rewritePolicy(rewriting: Rewriting, options: Options): void {
  const { source } = rewriting;
  const limiter = options.take("limiter");
  if (limiter === undefined) return;
  const made = valueIn(limiter);
  const code = made.type === "CallExpression" ? policyCode(rewriting, made) : undefined;
  if (code === undefined) {
    source.handle(limiter, 'Write `policy: slidingWindowCounter({ limit: 10, window: "10s" })`, or another policy.');
    return;
  }
  rewriting.done(made);
  options.set(limiter, `policy: ${code}`);
}

function policyCode(rewriting: Rewriting, made: Extract<Node, { type: "CallExpression" }>): string | undefined {
  const { source } = rewriting;
  const [first, second, third] = [0, 1, 2].map((i) => argument(made, i));
  const kind = propertyName(made.callee);
  const window = second && durationOf(second);
  if (first === undefined || window === undefined) return undefined;
  const limit = source.text(first);
  if (kind === "tokenBucket" && third !== undefined) {
    rewriting.need("tokenBucket");
    return `tokenBucket({ capacity: ${source.text(third)}, refill: ${limit}, every: ${window}, style: "interval" })`;
  }
  const ours =
    kind === "slidingWindow" ? "slidingWindowCounter" : kind === "fixedWindow" || kind === "cachedFixedWindow" ? "fixedWindow" : undefined;
  if (ours === undefined) return undefined;
  rewriting.need(ours);
  return `${ours}({ limit: ${limit}, window: ${window} })`;
}

function durationOf(node: Node): string | undefined {
  const value = constantOf(node);
  const ms = typeof value === "string" ? parseMs(value) : undefined;
  return ms === undefined ? undefined : durationCode(ms);
}

function rewriteStore(rewriting: Rewriting, options: Options): void {
  const { source } = rewriting;
  const redis = options.take("redis");
  if (redis === undefined) return;
  rewriting.need("redisStore", "@floodgate/store-redis");
  const value = bare(valueIn(redis));
  options.set(redis, `store: redisStore(${source.text(value)})`);
  source.handle(
    value,
    "`redisStore` needs a client for TCP: new Redis(process.env.REDIS_URL) of ioredis. Upstash has such an address too.",
  );
}

const ours: Readonly<Record<string, string>> = { success: "allowed", limit: "limit", remaining: "remaining" };

function rewriteUse(rewriting: Rewriting, use: Use): void {
  const { source } = rewriting;
  const { method, call, property } = use;
  if (method === "limit") {
    source.replace(property, "consume");
    rewriteRate(rewriting, call);
    if (!renameResult(rewriting, use, ours)) {
      source.handle(
        call,
        "The result is a decision: `allowed` for `success`, `limit`, `remaining`, and `retryAfterMs` and `resetAfterMs` for `reset`.",
      );
    }
  } else if (method === "resetUsedTokens") source.replace(property, "reset");
  else if (method === "getRemaining") {
    source.replace(property, "peek");
    if (!renameResult(rewriting, use, ours))
      source.handle(call, "The result is a decision: `limit`, `remaining`, and `resetAfterMs` for `reset`.");
  } else source.handle(call, `A limiter has no \`${method}\`: see the page.`);
}

/** `{ rate: 4 }` becomes `{ cost: 4 }`. */
function rewriteRate({ source }: Rewriting, call: Use["call"]): void {
  const given = argument(call, 1);
  if (given === undefined) return;
  const properties = given.type === "ObjectExpression" ? given.properties : [];
  const [rate] = properties;
  const isRate = properties.length === 1 && rate?.type === "ObjectProperty" && rate.key.type === "Identifier" && rate.key.name === "rate";
  if (isRate) source.edits.overwrite(start(rate.key), end(rate.shorthand ? rate : rate.key), rate.shorthand ? "cost: rate" : "cost");
  else source.handle(given, "`consume` takes { cost } only.");
}
