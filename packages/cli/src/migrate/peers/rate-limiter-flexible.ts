import { type Use, usesOf } from "../limiter.js";
import { argument, constantOf } from "../nodes.js";
import type { Options } from "../options.js";
import { type PeerRules, type Rewriting, valueIn } from "../rewriting.js";
import type { Call } from "../source.js";
import { durationCode } from "../write.js";

export const rules: PeerRules = {
  modules: ["rate-limiter-flexible"],
  ours: "@floodgate/core",
  builders: ["RateLimiterMemory", "RateLimiterRedis", "RateLimiterValkey"],
  builds: "createLimiter",
  rewrite,
};

const whatTo: Readonly<Record<string, string>> = {
  blockDuration: 'Block the key where it is rejected: limiter.block(key, "10m"). `rateLimit` of a framework has `ban`.',
  execEvenly: "Write `policy: leakyBucket({ capacity, leak, every })`, and wait `delayMs` of the decision.",
  execEvenlyMinDelayMs: "Write `policy: leakyBucket({ capacity, leak, every })`, and wait `delayMs` of the decision.",
  insuranceLimiter: "Write `onStoreError: memoryStore()`.",
};

function rewrite(rewriting: Rewriting, call: Call): void {
  const options = rewriting.optionsOf(call, argument(call.node, 0));
  if (options === undefined) return;
  rewriteName(rewriting, call, options);
  rewritePolicy(rewriting, options);
  rewriteStore(rewriting, call, options);
  for (const name of ["inMemoryBlockOnConsumed", "inMemoryBlockDuration", "useRedisPackage", "rejectIfRedisNotReady"]) {
    options.remove(options.take(name));
  }
  for (const use of usesOf(rewriting, call)) rewriteUse(rewriting, use);
  rewriting.finish(options, whatTo);
}

function rewriteName(rewriting: Rewriting, call: Call, options: Options): void {
  const prefix = options.take("keyPrefix");
  const given = prefix === undefined ? undefined : constantOf(valueIn(prefix));
  if (prefix !== undefined && typeof given !== "string") {
    rewriting.source.handle(prefix, 'Write `name: "api"`.');
    return;
  }
  const name = `name: ${JSON.stringify(rewriting.nameFor(call, typeof given === "string" && given !== "" ? given : undefined))}`;
  if (prefix === undefined) options.add(name);
  else options.set(prefix, name);
}

/** `points` and `duration` in seconds become a `policy`. */
function rewritePolicy(rewriting: Rewriting, options: Options): void {
  const { source } = rewriting;
  const points = options.take("points");
  const duration = options.take("duration");
  const seconds = duration === undefined ? 1 : constantOf(valueIn(duration));
  const first = points ?? duration;
  if (seconds === 0) {
    source.handle(duration ?? options.object, 'A window has an end. Write a long one, such as `window: "365d"`.');
    return;
  }
  const ms = typeof seconds === "number" ? seconds * 1000 : undefined;
  const window = ms !== undefined && Number.isInteger(ms) ? durationCode(ms) : duration && `${source.text(valueIn(duration))} * 1000`;
  const code = `policy: fixedWindow({ limit: ${points === undefined ? 4 : source.text(valueIn(points))}, window: ${window} })`;
  rewriting.need("fixedWindow");
  if (first === undefined) options.add(code);
  else options.set(first, code);
  if (points !== undefined) options.remove(duration);
}

function rewriteStore(rewriting: Rewriting, call: Call, options: Options): void {
  const { source } = rewriting;
  const client = options.take("storeClient");
  if (call.exported === "RateLimiterMemory") {
    options.remove(client);
    rewriting.need("memoryStore", "@floodgate/store-memory");
    options.add("store: memoryStore()");
    return;
  }
  if (client === undefined) {
    source.handle(options.object, "Write `store: redisStore(client)`.");
    return;
  }
  rewriting.need("redisStore", "@floodgate/store-redis");
  options.set(client, `store: redisStore(${source.text(valueIn(client))})`);
}

function rewriteUse({ source }: Rewriting, { method, call, property }: Use): void {
  const name = source.text(call.callee).replace(/\.\w+$/, "");
  if (method === "delete") source.replace(property, "reset");
  else if (method === "block") {
    const duration = argument(call, 1);
    const seconds = duration && constantOf(duration);
    if (duration !== undefined && typeof seconds === "number" && seconds > 0) source.replace(duration, durationCode(seconds * 1000));
    else source.handle(call, `Write ${name}.block(key, "1h"), with a duration and its unit.`);
  } else if (method === "consume") {
    source.handle(
      call,
      `A rejection is a result here, not an error. Write const { allowed, remaining, retryAfterMs } = await ${name}.consume(key), or { cost } after the key; in an app, rateLimit({ ... }) as middleware.`,
    );
  } else if (method === "get") {
    source.handle(call, `Write ${name}.peek(key): a decision with \`allowed\`, \`remaining\`, \`used\` and \`retryAfterMs\`, never null.`);
  } else if (method === "penalty") source.handle(call, `Write ${name}.settle(key, decision, cost), which charges a request more.`);
  else if (method === "reward") source.handle(call, `Write ${name}.refund(key, decision), which gives a request back.`);
  else source.handle(call, `A limiter has no \`${method}\`: see the page.`);
}
