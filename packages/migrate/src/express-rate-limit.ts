import type { Node } from "@babel/types";
import { headersOf } from "./headers.js";
import { isMemberOf, rewriteHandler, rewriteKeyFunction, rewriteLimit, rewriteRefunds, rewriteSkip, takeAnswer } from "./middleware.js";
import { argument, bare, constantOf, isFunction, propertyName, walk } from "./nodes.js";
import { nameOf, type Options } from "./options.js";
import { isFunctionProperty, type MiddlewareRules, type Rewriting, valueIn } from "./rewriting.js";
import { type Call, end } from "./source.js";

export const rules: MiddlewareRules = {
  modules: ["express-rate-limit", "rate-limit-redis"],
  ours: "@floodgate/express",
  builders: ["default", "rateLimit"],
  types: { RateLimitRequestHandler: "RateLimitMiddleware" },
  rewrite,
  rewriteReaders,
};

const whatTo: Readonly<Record<string, string>> = {
  logger: "Write `onEvent: (event) => ...`, which gets decisions, warnings and store errors.",
  retryAfter: "`Retry-After` is always the shortest wait after which the request passes. Remove it.",
};

function rewrite(rewriting: Rewriting, call: Call): void {
  const { source } = rewriting;
  if (call.given === undefined) {
    source.edits.appendLeft(end(call.node) - 1, '{ limit: 5, window: "1m", headers: "legacy" }');
    return;
  }
  const options = rewriting.optionsOf(call);
  if (options === undefined) return;
  decisionName(rewriting, options);
  rewriteLimit(
    rewriting,
    options,
    { limit: options.take("limit", "max"), window: options.take("windowMs") },
    { limit: 5, windowMs: 60_000 },
  );
  rewriteAnswer(rewriting, options);
  rewriteKey(rewriting, options);
  rewriteSkip(source, options, options.take("skip"), "req");
  rewriteRefunds(source, options, ([, response]) => (response === undefined ? [] : [`${response}.statusCode`]));
  const storePrefix = rewriteStore(rewriting, options);
  rewriteName(rewriting, call, options, storePrefix);
  headersOf(source, options, false, true);
  const validate = options.take("validate");
  options.remove(validate);
  if (validate !== undefined) source.note(validate, "`validate` is removed: options are always checked, when `rateLimit` is called.");
  rewriteMembers(rewriting, call);
  rewriting.finish(options, whatTo);
}

function decisionName({ source }: Rewriting, options: Options): void {
  const given = options.take("requestPropertyName");
  if (given === undefined) return;
  options.rename(given, "decisionName");
  if (typeof constantOf(valueIn(given)) !== "string") source.handle(given, "`decisionName` must be a text.");
}

/** `message`, `statusCode` and `handler` become `body` or `onLimited`. */
function rewriteAnswer(rewriting: Rewriting, options: Options): void {
  const { source } = rewriting;
  const answer = takeAnswer(source, options);
  const { message, statusCode, handler, status, text } = answer;
  if (handler !== undefined) {
    const advice = "`onLimited` gets (req, res, decision), and neither `next` nor the options. Rewrite what uses them.";
    rewriteHandler(source, options, handler, answer, 2, advice);
    return;
  }
  if (statusCode !== undefined && status !== 429) {
    const code = typeof status === "number" ? `${status}` : source.text(valueIn(statusCode));
    const send = text === undefined && message !== undefined ? `await (${source.text(valueIn(message))})(req, res)` : text;
    options.set(statusCode, `onLimited: ${send?.startsWith("await") ? "async " : ""}(req, res) => res.status(${code}).send(${send})`);
    options.remove(message);
    return;
  }
  options.remove(statusCode);
  if (message === undefined) return;
  if (text !== undefined) options.rename(message, "body");
  else if (message.type === "ObjectProperty") {
    options.set(message, `onLimited: async (req, res) => res.send(await (${source.text(message.value)})(req, res))`);
  } else source.handle(message, "Write `onLimited: async (req, res) => res.send(...)`.");
}

/** `keyGenerator` becomes `key`. Addresses in it become `ip`, which joins the addresses of an IPv6 network. */
function rewriteKey(rewriting: Rewriting, options: Options): void {
  const { source } = rewriting;
  const subnet = options.take("ipv6Subnet");
  if (subnet !== undefined) {
    const bits = constantOf(valueIn(subnet));
    if (bits === false) options.set(subnet, "ipv6Prefix: 128");
    else if (isFunctionProperty(subnet)) source.handle(subnet, "`ipv6Prefix` is one number for all clients.");
    else options.rename(subnet, "ipv6Prefix");
  }
  rewriteKeyFunction(rewriting, options, options.take("keyGenerator"), "req", (node, request) => {
    if (node.type === "CallExpression") return source.exported(node.callee, rewriting.imports)?.exported === "ipKeyGenerator";
    return propertyName(node) === "ip" && isMemberOf(node, request);
  });
}

/** @returns the prefix of the store's keys, if it is given. */
function rewriteStore(rewriting: Rewriting, options: Options): { prefix: string | undefined } | undefined {
  const { source } = rewriting;
  const store = options.take("store");
  const pass = options.take("passOnStoreError");
  const passes = pass === undefined ? false : constantOf(valueIn(pass));
  if (store === undefined) {
    options.remove(pass);
    return undefined;
  }
  const value = valueIn(store);
  const made = value.type === "NewExpression" ? source.exported(value.callee, rewriting.imports) : undefined;
  if (made?.exported === "MemoryStore") {
    rewriting.done(value);
    options.remove(store);
    options.remove(pass);
    return undefined;
  }
  const redis = value.type === "NewExpression" && made?.module === "rate-limit-redis" ? redisOf(rewriting, argument(value, 0)) : undefined;
  if (redis === undefined) {
    source.handle(store, "Floodgate has stores for memory and Redis. Write `store: redisStore(client)`, or see docs/writing-a-store.md.");
    return undefined;
  }
  rewriting.done(value);
  rewriting.need("redisStore", store, "@floodgate/store-redis");
  options.set(store, `store: redisStore(${redis.client})`);
  if (typeof passes !== "boolean") source.handle(pass ?? store, 'Write `onStoreError: "allow"` or `"deny"`.');
  else if (pass === undefined) options.add('onStoreError: "deny"');
  else options.set(pass, `onStoreError: ${passes ? '"allow"' : '"deny"'}`);
  return { prefix: redis.prefix };
}

/** The client in `{ sendCommand: (...args) => client.sendCommand(args), prefix: "rl:login:" }`. */
function redisOf({ source }: Rewriting, given: Node | undefined): { client: string; prefix: string | undefined } | undefined {
  const object = given && bare(given);
  if (object?.type !== "ObjectExpression") return undefined;
  let client: string | undefined;
  let prefix: string | undefined;
  for (const property of object.properties) {
    if (property.type === "SpreadElement" || property.key.type !== "Identifier") return undefined;
    const value = source.functionOf(valueIn(property)) ?? valueIn(property);
    if (property.key.name === "prefix") {
      const text = constantOf(value);
      if (typeof text !== "string") return undefined;
      prefix = text;
    } else if (property.key.name === "sendCommand" && isFunction(value)) {
      walk(value.body, (node) => {
        if (node.type !== "CallExpression" || node.callee.type !== "MemberExpression") return;
        const method = propertyName(node.callee);
        const object = bare(node.callee.object);
        // A call may make a client, or find one only later.
        const isClient = object.type === "Identifier" || object.type === "MemberExpression";
        if ((method === "sendCommand" || method === "call") && isClient) client = source.text(object);
      });
    } else if (property.key.name !== "resetExpiryOnChange") return undefined;
  }
  return client === undefined ? undefined : { client, prefix };
}

/** A name is needed where several limits might be one: in one store, or in the headers of one response. */
function rewriteName(rewriting: Rewriting, call: Call, options: Options, store: { prefix: string | undefined } | undefined): void {
  const { source } = rewriting;
  const identifier = options.take("identifier");
  const given = identifier === undefined ? undefined : constantOf(valueIn(identifier));
  if (identifier !== undefined && typeof given !== "string") {
    source.handle(identifier, 'Write `name: "api"`: a name is a text, for all requests of the limit.');
    return;
  }
  const prefix = store?.prefix?.replace(/^rl:|:$/g, "");
  const own = typeof given === "string" ? given : prefix === "" ? undefined : prefix;
  if (own === undefined && store === undefined && rewriting.calls.length === 1) return;
  const name = JSON.stringify(rewriting.nameFor(call, own));
  if (identifier !== undefined) options.set(identifier, `name: ${name}`);
  else if (name !== '"default"') options.add(`name: ${name}`);
  else if (store !== undefined) source.note(call.node, 'Give each limit on one Redis a name of its own, for example name: "api".');
}

/** The methods of the middleware: `limiter.resetKey(key)`. */
function rewriteMembers({ source }: Rewriting, { parent }: Call): void {
  if (parent?.type !== "VariableDeclarator" || parent.id.type !== "Identifier") return;
  const { name } = parent.id;
  for (const use of source.uses(name)) {
    const member = source.parentOf(use);
    if (member?.type !== "MemberExpression" || member.object !== use) continue;
    const method = propertyName(member);
    if (method === "resetKey") source.replace(member.property, "limiter.reset");
    else if (method === "getKey") {
      source.handle(member, `Write ${name}.limiter.peek(key): a decision with \`used\`, \`remaining\` and \`resetAfterMs\`.`);
    }
  }
}

/** What handlers read of the request: `req.rateLimit.resetTime`. */
function rewriteReaders({ source, rewritten }: Rewriting): void {
  const names = new Set(rewritten.map(decisionOf));
  walk(source.program, (node, parent) => {
    if (node.type !== "MemberExpression" && node.type !== "OptionalMemberExpression") return;
    const object = bare(node.object);
    if (!names.has(propertyName(node)) || object.type !== "Identifier" || !/^_?(req|request)$/.test(object.name)) return;
    const around = parent && bare(parent) === node ? [...source.around(parent)][0] : parent;
    const reader = around?.type === "MemberExpression" || around?.type === "OptionalMemberExpression" ? around : undefined;
    const member = reader && propertyName(reader);
    const at = source.text(node);
    if (member === "current" && reader !== undefined) source.replace(reader.property, "used");
    else if (member === "resetTime") source.handle(node, `Write new Date(Date.now() + ${at}.resetAfterMs).`);
    else if (member === "key") source.handle(node, "A decision has no `key`. Compute it again, or read it from the events of `onEvent`.");
    else if (member !== "limit" && member !== "remaining" && member !== "used") {
      source.handle(node, `${at} is a decision now: limit, used, remaining, retryAfterMs, resetAfterMs.`);
    }
  });
}

function decisionOf({ given }: Call): string | undefined {
  if (given?.type !== "ObjectExpression") return "rateLimit";
  const property = given.properties.find((one) => one.type === "ObjectProperty" && nameOf(one) === "requestPropertyName");
  const value = property?.type === "ObjectProperty" ? constantOf(property.value) : undefined;
  return typeof value === "string" ? value : "rateLimit";
}
