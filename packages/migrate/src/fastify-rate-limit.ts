import type { Node } from "@babel/types";
import type { Import } from "./loads.js";
import { bothNeeded, isIpOf, rewriteKeyFunction, rewriteLimit, rewriteSkip } from "./middleware.js";
import { argument, bare, constantOf, isFunction, propertyName, walk } from "./nodes.js";
import { nameOf, type Options, propertyOf } from "./options.js";
import type { MiddlewareRules, Rewriting } from "./rewriting.js";
import type { Call, Source } from "./source.js";
import { end, start } from "./source-text.js";
import { msOfWords } from "./write.js";

export const rules: MiddlewareRules = {
  modules: ["@fastify/rate-limit", "fastify-rate-limit"],
  ours: "@floodgate/fastify",
  // A plugin of one library does not see the options that a route has for another.
  isWhole: true,
  find,
  rewrite,
  rewriteReaders,
};

const fixedHeaders = "Header names are fixed. Write `headers`, which chooses a form, or remove it.";

const whatTo: Readonly<Record<string, string>> = {
  ban: 'Write `ban: { after: 3, within: "1m", for: "10m" }`, which answers 429.',
  continueExceeding: "Write `policy: slidingWindowLog({ limit, window, countRejected: true })` in place of `limit` and `window`.",
  exponentialBackoff: "Floodgate's `ban` has one length.",
  errorResponseBuilder: "Write `onLimited: (request, reply, decision) => ...`, which returns what to send, or throws.",
  addHeadersOnExceeding: fixedHeaders,
  onExceeding: 'Write `onEvent: (event) => ...`, and look for event.type === "allowed".',
  onExceeded: 'Write `onEvent: (event) => ...`, and look for event.type === "limited".',
  onBanReach: 'Write `onEvent: (event) => ...`, and look for event.type === "banned".',
  store: "Write a store of your own by docs/writing-a-store.md.",
};

/** Options that only this library has. They tell its routes in files that do not import it. */
const routeOptions = ["max", "timeWindow", "keyGenerator", "allowList", "errorResponseBuilder", "groupId", "continueExceeding"];

/** The plugin where it is registered, and `rateLimit: { ... }` in the configuration of routes. */
function find(source: Source, imports: readonly Import[]): Call[] {
  const found: Call[] = [];
  walk(source.program, (node, parent) => {
    if (node.type === "CallExpression" && propertyName(node.callee) === "register") {
      const plugin = argument(node, 0);
      if (plugin === undefined || source.exported(plugin, imports) === undefined) return;
      // A promise is awaited in place, where the code may wait.
      if (plugin.type === "ImportExpression" && parent?.type !== "AwaitExpression") return;
      found.push({ node, parent, given: argument(node, 1), builder: { node: plugin, from: start(plugin) } });
    } else if (node.type === "ObjectProperty" && nameOf(node) === "rateLimit") {
      const given = bare(node.value);
      const isRoute = isConfig(source, parent);
      // Its value may be written elsewhere: `const strict = { max: 5 }`.
      if (isRoute && (given.type === "Identifier" || given.type === "MemberExpression")) found.push({ node: given, parent: node, given });
      if (given.type !== "ObjectExpression") return;
      const names = given.properties.map((property) => (property.type === "SpreadElement" ? undefined : nameOf(property)));
      if (!names.some((name) => name !== undefined && routeOptions.includes(name))) return;
      if (isRoute) found.push({ node: given, parent: node, given });
      else if (names.includes("timeWindow"))
        source.handle(
          given,
          "If these are the options of a route, write { limit, window }. If the app reads them as its settings, they may stay.",
        );
    }
  });
  return found;
}

/** Whether an object is `config` of a route. */
function isConfig(source: Source, object: Node | undefined): boolean {
  const outer = object && source.parentOf(object);
  return outer?.type === "ObjectProperty" && nameOf(outer) === "config";
}

function rewrite(rewriting: Rewriting, call: Call): void {
  const { source } = rewriting;
  const { builder, given } = call;
  if (builder !== undefined && given === undefined) {
    source.edits.appendRight(end(builder.node), '({ limit: 1000, window: "1m", headers: "legacy" })');
    return;
  }
  const options = rewriting.optionsOf(call);
  if (options === undefined) return;
  const global = options.take("global");
  const [limit, window] = [options.take("max"), options.take("timeWindow")];
  const isWhole = builder !== undefined && (global?.constant !== false || limit !== undefined || window !== undefined);
  const isHalf = builder === undefined && (limit === undefined) !== (window === undefined);
  const own = [limit, window].filter((option) => option?.function !== undefined);
  for (const option of own)
    option?.handle(
      "A limit of each request's own is `plan` and `plans`, or `policy: (request) => slidingWindowCounter({ limit, window })`.",
    );
  const defaults = isWhole ? usual : isHalf ? pluginDefaults(rewriting) : undefined;
  if (isHalf && defaults === undefined) (limit ?? window)?.handle(bothNeeded);
  if (own.length === 0) rewriteLimit(rewriting, options, { limit, window }, defaults);
  // Routes of one `groupId` share a count, as do routes of one name.
  const group = options.take("groupId");
  group?.rename("name");
  if (group !== undefined && typeof group.constant !== "string")
    group.handle('Write `name: "api"`. Routes of one name and limit share a count.');
  const key = options.take("keyGenerator");
  rewriteKeyFunction(rewriting, options, key, isIpOf);
  rewriteAllowList(rewriting, options, key === undefined);
  const hook = options.take("hook");
  if (hook !== undefined && hook.constant !== "onRequest" && hook.constant !== "preHandler")
    hook.handle('Write `hook: "onRequest"`, or `hook: "preHandler"` if the key needs the body.');
  if (builder !== undefined) rewriteStore(rewriting, options);
  // All headers are sent if nothing else is said.
  const headers = options.take("addHeaders");
  const isUsual = headers?.value.type === "ObjectExpression" && headers.value.properties.every(isOn);
  if (isUsual) options.remove(headers);
  else headers?.handle(fixedHeaders);
  const draft = options.take("enableDraftSpec");
  const isDraft = draft === undefined ? false : draft.constant;
  if (typeof isDraft !== "boolean") draft?.handle('Write `headers: "draft-6"` or `headers: "legacy"`.');
  options.remove(draft);
  if (builder !== undefined || draft !== undefined) options.add(`headers: "${isDraft === true ? "draft-6" : "legacy"}"`);
  rewriting.finish(options, whatTo);
  if (builder === undefined || given === undefined) return;
  // register(plugin, options) becomes register(rateLimit(options)).
  source.edits.overwrite(end(builder.node), start(given), "(");
  source.edits.appendLeft(end(given), ")");
}

const usual = { limit: 1000, windowMs: 60_000 };

/** What the plugin says for routes, if this file has all of it. */
function pluginDefaults({ calls }: Rewriting): typeof usual | undefined {
  const [plugin, ...others] = calls.filter(({ builder }) => builder !== undefined);
  const given = plugin?.given && bare(plugin.given);
  if (plugin === undefined || others.length > 0) return undefined;
  if (given === undefined) return usual;
  if (given.type !== "ObjectExpression" || given.properties.some(({ type }) => type === "SpreadElement")) return undefined;
  const [max, window] = ["max", "timeWindow"].map((name) => propertyOf(given, name));
  const limit = max === undefined ? usual.limit : constantOf(max);
  const time = window === undefined ? usual.windowMs : constantOf(window);
  const windowMs = typeof time === "string" ? msOfWords(time) : time;
  return typeof limit === "number" && typeof windowMs === "number" ? { limit, windowMs } : undefined;
}

function isOn(property: Node): boolean {
  return property.type === "ObjectProperty" && constantOf(property.value) === true;
}

/** A list of keys becomes `exempt`, a function `skip`. */
function rewriteAllowList(rewriting: Rewriting, options: Options, isByAddress: boolean): void {
  const list = options.take("allowList", "whitelist");
  if (list?.function !== undefined) rewriteSkip(rewriting, list, "request");
  else if (list?.value.type === "ArrayExpression") list.set(`exempt: { ${isByAddress ? "ips" : "keys"}: ${list.code} }`);
  else list?.handle("Write `exempt: { ips: [...] }`, or `exempt: { keys: [...] }`, or `skip: (request) => ...`.");
}

/** `redis`, `nameSpace` and `skipOnError`, or `cache`, become `store`, `name` and `onStoreError`. */
function rewriteStore(rewriting: Rewriting, options: Options): void {
  const [redis, cache, space, skips] = ["redis", "cache", "nameSpace", "skipOnError"].map((name) => options.take(name));
  options.remove(cache, space, skips);
  if (redis === undefined) {
    if (cache === undefined) return;
    rewriting.need("memoryStore", cache.property);
    if (typeof cache.constant === "number") options.add(`store: memoryStore({ maxKeys: ${cache.code} })`);
    else cache.handle("Write `store: memoryStore({ maxKeys: 5000 })`.");
    return;
  }
  rewriting.useRedis(redis, redis.code);
  const name = space?.constant;
  if (typeof name === "string") options.add(`name: ${JSON.stringify(name)}`);
  else if (space !== undefined) space.handle('Write `name: "api"`.');
  else rewriting.noteName(redis.property);
  const allows = skips === undefined ? false : skips.constant;
  if (typeof allows !== "boolean") skips?.handle('Write `onStoreError: "allow"` or `onStoreError: "deny"`.');
  else if (!allows) options.add('onStoreError: "deny"');
}

/** What else the plugin gives an app: `app.rateLimit()` and `app.createRateLimit()`. */
function rewriteReaders({ source }: Rewriting): void {
  walk(source.program, (node: Node) => {
    if (node.type !== "CallExpression" || isFunction(node.callee)) return;
    const name = propertyName(node.callee);
    if (name === "rateLimit") source.handle(node, "Write `limit.hook`, where `const limit = rateLimit({ ... })`.");
    else if (name === "createRateLimit") source.handle(node, "Write createLimiter({ name, policy, store }), and `consume` in the handler.");
  });
}
