import type { Node } from "@babel/types";
import { type OtherAnswer, rewriteAnswer } from "./answer.js";
import { rewriteReads } from "./app-code.js";
import { rewriteHeaders } from "./headers.js";
import { isIpOf, rewriteKeyFunction, rewriteLimit, rewriteRefunds, rewriteSkip, withoutDefault } from "./middleware.js";
import { argument, bare, type CallNode, constantOf, isFunction, isMember, parameterName, propertyName, walk } from "./nodes.js";
import { type Options, propertyOf, valueIn } from "./options.js";
import type { MiddlewareRules, Rewriting } from "./rewriting.js";
import type { Call, Source } from "./source.js";
import { end } from "./source-text.js";

export const rules: MiddlewareRules = {
  modules: ["express-rate-limit", "rate-limit-redis", "express-slow-down"],
  ours: "@floodgate/express",
  builders: { "express-rate-limit": ["default", "rateLimit"], "express-slow-down": ["default", "slowDown"] },
  types: { RateLimitRequestHandler: "RateLimitMiddleware" },
  rewrite,
  rewriteReaders,
};

const delays = 'Only old versions delay requests. Remove this, or see "Slow down" of the page.';

const whatTo: Readonly<Record<string, string>> = {
  onLimitReached: 'Write `onEvent: (event) => ...`, and look for event.type === "limited".',
  delayAfter: delays,
  logger: "Write `onEvent: (event) => ...`, which gets decisions, warnings and store errors.",
  retryAfter: "`Retry-After` is always the shortest wait after which the request passes. Remove it.",
};

const otherAddress =
  "`ipKeyGenerator`: write `ip` of key: (req, { ip }) => ..., the client's network. `ipv6Prefix` sets its size, and `clientIp` reads another address.";

function rewrite(rewriting: Rewriting, call: Call): void {
  const { source } = rewriting;
  if (call.builder && source.exported(call.builder.node, rewriting.imports)?.module === "express-slow-down") {
    source.handle(call.node, 'This works beside Floodgate, and may stay. "Slow down" of the page does the same without it.');
    return;
  }
  if (call.given === undefined) {
    source.edits.appendLeft(end(call.node) - 1, '{ limit: 5, window: "1m", headers: "legacy" }');
    return;
  }
  const options = rewriting.optionsOf(call);
  if (options === undefined) return;
  const decisionName = options.take("requestPropertyName");
  decisionName?.rename("decisionName");
  if (decisionName !== undefined && typeof decisionName.constant !== "string") decisionName.handle("`decisionName` must be a text.");
  const [limit, window] = [options.take("limit", "max"), options.take("windowMs")];
  rewriteLimit(rewriting, options, { limit, window }, { limit: 5, windowMs: 60_000 });
  const numbers = { limit: limit?.constant, max: limit?.constant, windowMs: window?.constant };
  rewriteAnswer(rewriting, options, ["req", "res"], onLimited, numbers);
  const key = options.take("keyGenerator");
  const isMaker = (node: Node): node is CallNode =>
    node.type === "CallExpression" && source.exported(node.callee, rewriting.imports)?.exported === "ipKeyGenerator";
  const isAddress = (node: Node, request: string): boolean => {
    if (!isMaker(node)) return isIpOf(node, request);
    const [address, subnet] = node.arguments;
    return address !== undefined && isIpOf(withoutDefault(address), request) && (subnet === undefined || isSubnet(constantOf(subnet)));
  };
  rewriteKeyFunction(rewriting, options, key, isAddress);
  const request = key?.function && parameterName(key.function, 0);
  const subnets = new Set<Subnet>();
  if (key !== undefined && isFunction(key.value)) {
    walk(key.value.body, (node) => {
      if (!isMaker(node)) return;
      const [, subnet] = node.arguments;
      subnets.add(subnet === undefined ? 56 : (constantOf(subnet) as Subnet));
      if (!isAddress(node, request ?? "") || subnets.size > 1) source.handle(node, otherAddress);
    });
  }
  rewriteSubnet(options, subnets);
  rewriteSkip(rewriting, options.take("skip"), "req");
  rewriteRefunds(rewriting, options, ([, response]) => response && `${response}.statusCode`);
  const storePrefix = rewriteStore(rewriting, options);
  rewriteName(rewriting, call, options, storePrefix);
  rewriteHeaders(options, false, true);
  const [validate, delay] = [options.take("validate"), options.take("delayMs")];
  options.remove(validate, delay);
  if (delay !== undefined && delay.constant !== 0) delay.handle(delays);
  validate?.note("`validate` is removed: options are always checked, when `rateLimit` is called.");
  rewriteMembers(rewriting, call);
  rewriting.finish(options, whatTo);
}

function onLimited({ message, text, status }: OtherAnswer): string | undefined {
  // A method of the options is no expression.
  if (message?.value.type === "ObjectMethod") return undefined;
  const sent = text ?? `await (${message?.code})(req, res)`;
  return `${text === undefined ? "async " : ""}(req, res) => res${status === undefined ? "" : `.status(${status})`}.send(${sent})`;
}

/** The size of an IPv6 network, in bits; false for single addresses. */
type Subnet = number | false;

const isSubnet = (value: unknown): value is Subnet => value === false || typeof value === "number";

/** `ipv6Subnet` becomes `ipv6Prefix`. A key function does not read it: those that it gives to `ipKeyGenerator` are in its place. */
function rewriteSubnet(options: Options, [ofKey]: ReadonlySet<Subnet>): void {
  const subnet = options.take("ipv6Subnet");
  if (ofKey !== undefined && (subnet !== undefined || ofKey !== 56)) options.put(`ipv6Prefix: ${ofKey === false ? 128 : ofKey}`, subnet);
  if (subnet === undefined || ofKey !== undefined) return;
  if (subnet.constant === false) subnet.set("ipv6Prefix: 128");
  else if (isFunction(subnet.value)) subnet.handle("`ipv6Prefix` is one number for all clients.");
  else subnet.rename("ipv6Prefix");
}

/** @returns the prefix of the store's keys, if it is given. */
function rewriteStore(rewriting: Rewriting, options: Options): { prefix: string | undefined } | undefined {
  const { source } = rewriting;
  const [store, pass] = [options.take("store"), options.take("passOnStoreError")];
  const value = store?.value;
  const made = value?.type === "NewExpression" ? source.exported(value.callee, rewriting.imports) : undefined;
  if (store === undefined || made?.exported === "MemoryStore") {
    if (value !== undefined) rewriting.done(value);
    options.remove(store, pass);
    return undefined;
  }
  const redis = value?.type === "NewExpression" && made?.module === "rate-limit-redis" ? redisOf(source, argument(value, 0)) : undefined;
  if (redis === undefined) {
    store.handle("Write `store: redisStore(client)` and a `name`, or another store of docs/choosing-a-store.md.");
    return undefined;
  }
  rewriting.done(store.value);
  rewriting.useRedis(store, redis.client);
  const passes = pass === undefined ? false : pass.constant;
  if (typeof passes === "boolean") options.put(`onStoreError: ${passes ? '"allow"' : '"deny"'}`, pass);
  else pass?.handle('Write `onStoreError: "allow"` or `"deny"`.');
  return { prefix: redis.prefix };
}

/** The client in `{ sendCommand: (...args) => client.sendCommand(args), prefix: "rl:login:" }`. */
function redisOf(source: Source, given: Node | undefined): { client: string; prefix: string | undefined } | undefined {
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
  const identifier = options.take("identifier");
  const given = identifier?.constant;
  if (identifier !== undefined && typeof given !== "string") {
    identifier.handle('Write `name: "api"`: a name is a text, for all requests of the limit.');
    return;
  }
  const prefix = store?.prefix?.replace(/^rl:|:$/g, "");
  const own = typeof given === "string" ? given : prefix === "" ? undefined : prefix;
  if (own === undefined && store === undefined && rewriting.calls.length === 1) return;
  const name = rewriting.nameFor(call, own);
  if (identifier !== undefined || name !== "default") options.put(`name: ${JSON.stringify(name)}`, identifier);
  else if (store !== undefined) rewriting.noteName(call.node);
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
  const names = new Set<string | undefined>(rewritten.map(decisionOf));
  rewriteReads(source, (node) => {
    const object = isMember(node) && names.has(propertyName(node)) ? bare(node.object) : undefined;
    return object?.type === "Identifier" && /^_?(req|request)$/.test(object.name);
  });
}

function decisionOf({ given }: Call): string {
  const name = propertyOf(given, "requestPropertyName");
  const value = name && constantOf(name);
  return typeof value === "string" ? value : "rateLimit";
}
