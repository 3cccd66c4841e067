import type { Node } from "@babel/types";
import {
  bare,
  constantOf,
  entryOf,
  type FunctionNode,
  isFunction,
  parameterName,
  propertyName,
  references,
  returnsBoolean,
  some,
  walk,
} from "./nodes.js";
import type { Options, Property } from "./options.js";
import { isFunctionProperty, type Rewriting, valueIn } from "./rewriting.js";
import { end, isInside, type Source, start } from "./source.js";
import { durationCode, msOfWords } from "./write.js";

// Options that express-rate-limit and hono-rate-limiter have in common, and koa-ratelimit in part.

/** A duration as our code; undefined if the file does not say how long it is. */
function windowCode(source: Source, property: Property): string | undefined {
  const value = constantOf(valueIn(property));
  const ms = typeof value === "string" ? msOfWords(value) : value;
  if (typeof ms === "number" && Number.isInteger(ms) && ms > 0) return durationCode(ms);
  if (value !== undefined) source.handle(property, 'Write a window with a whole number and a unit: window: "15m".');
  return property.type === "ObjectProperty" ? source.text(property.value) : undefined;
}

/** `windowMs` and the like. A duration that is not constant stays: a number of milliseconds that is a multiple of 1000 is a duration of ours. */
function rewriteWindow(source: Source, options: Options, property: Property | undefined, defaultMs: number | undefined): void {
  if (property === undefined) {
    if (defaultMs !== undefined) options.add(`window: ${durationCode(defaultMs)}`);
    return;
  }
  const code = windowCode(source, property) ?? "";
  options.set(property, `window: ${code}`);
  if (!code.startsWith('"')) {
    source.note(
      property,
      "A `window` that is a number must be a multiple of 1000. TypeScript and the start of the app tell you if it is not.",
    );
  }
}

/**
 * `limit`, a number or a function of the request. A function becomes a policy.
 * @param defaults what a call without them means; undefined if they come from elsewhere.
 */
export function rewriteLimit(
  rewriting: Rewriting,
  options: Options,
  { limit, window }: { limit: Property | undefined; window: Property | undefined },
  defaults: { limit: number; windowMs: number } | undefined,
): void {
  const { source } = rewriting;
  if (limit !== undefined) checkLimit(source, limit);
  else if (defaults !== undefined) options.add(`limit: ${defaults.limit}`);
  const value = limit && source.functionOf(valueIn(limit));
  if (limit === undefined || value === undefined) {
    if (limit !== undefined) options.rename(limit, "limit");
    rewriteWindow(source, options, window, defaults?.windowMs);
    return;
  }
  const code = window === undefined ? durationCode(defaults?.windowMs ?? 60_000) : (windowCode(source, window) ?? "");
  options.remove(window);
  rewriting.need("slidingWindowCounter", limit);
  const inside = valueIn(limit);
  if (inside.type === "ArrowFunctionExpression" && inside.body.type !== "BlockStatement" && inside.params.length <= 1) {
    options.rename(limit, "policy");
    const isPromise = inside.async && !hasAwait(inside.body);
    withoutParentheses(source, inside.body);
    source.edits.appendRight(start(inside.body), `slidingWindowCounter({ limit: ${isPromise ? "await (" : ""}`);
    source.edits.appendLeft(end(inside.body), `${isPromise ? ")" : ""}, window: ${code} })`);
  } else if (limit.type === "ObjectProperty" && value.params.length <= 1) {
    options.rename(limit, "policy");
    source.edits.appendRight(start(limit.value), "async (request) => slidingWindowCounter({ limit: await (");
    source.edits.appendLeft(end(limit.value), `)(request), window: ${code} })`);
  } else {
    source.handle(limit, "Write `policy: (request) => slidingWindowCounter({ limit, window })`. It gets only the request.");
  }
  source.note(limit, "With a `policy` that is a function, `limiter.reset` fails until the first request. Prefer `plan` and `plans`.");
}

/** Reports a limit that means another thing here, or nothing. */
function checkLimit(source: Source, limit: Property): void {
  const value = constantOf(valueIn(limit));
  if (value === 0)
    source.handle(limit, "A limit of 0 rejects everything here. If it meant no limit, remove the middleware; else write limit: 0.");
  else if (value !== undefined && typeof value !== "number") source.handle(limit, "`limit` must be a number: limit: 100.");
  walk(limit, (node) => {
    const name = node.type === "Identifier" ? node.name : propertyName(node);
    if (name === "Infinity" || name === "POSITIVE_INFINITY" || name === "NaN") {
      source.handle(node, `\`${name}\` is not a limit. To limit nothing, write skip: (request) => ..., or do not mount the middleware.`);
    }
  });
}

/** Removes the parentheses around an expression. */
function withoutParentheses(source: Source, node: Node): void {
  const from = node.extra?.["parenStart"];
  if (typeof from !== "number") return;
  source.edits.remove(from, from + 1);
  const to = source.code.indexOf(")", end(node));
  source.edits.remove(to, to + 1);
}

function hasAwait(node: Node): boolean {
  return some(node, ({ type }) => type === "AwaitExpression");
}

/** Removes the parameters from an index on. @returns false if the function uses one of them; then they stay. */
function dropParameters(source: Source, node: FunctionNode, from: number): boolean {
  const dropped = node.params.slice(from);
  if (dropped.length === 0) return true;
  for (const parameter of dropped) {
    if (parameter.type !== "Identifier") return false;
    if (references(node.body, parameter.name).length > 0) return false;
  }
  const before = node.params[from - 1];
  const last = dropped.at(-1) as Node;
  if (before === undefined) return false;
  source.edits.remove(end(before), end(last));
  return true;
}

/** A function of the request becomes `skip`, which answers true or false. */
export function rewriteSkip(source: Source, options: Options, property: Property | undefined, request: string): void {
  if (property === undefined) return;
  options.rename(property, "skip");
  const value = valueIn(property);
  const known = source.functionOf(value);
  if (readsMore(source, value, known)) source.handle(property, "`skip` gets the request, and not the response. Rewrite what uses it.");
  else if (known !== undefined && returnsBoolean(known)) return;
  else if (value.type === "ObjectMethod") source.handle(property, "`skip` must answer true or false.");
  else if (value.type !== "ArrowFunctionExpression" || value.body.type === "BlockStatement") {
    // The code from the edits: a parameter that is not used has been removed.
    const code = isFunction(value) ? `(${source.edits.slice(start(value), end(value))})` : calleeCode(source, value);
    options.set(property, `skip: async (${request}) => Boolean(await ${code}(${request}))`);
  } else {
    // A call may answer a promise, which is not false.
    const mayWait = value.async || hasCall(value.body);
    withoutParentheses(source, value.body);
    if (mayWait && !value.async) source.edits.appendRight(start(value), "async ");
    source.edits.appendRight(start(value.body), mayWait ? "Boolean(await (" : "Boolean(");
    source.edits.appendLeft(end(value.body), mayWait ? "))" : ")");
  }
}

/** Whether a function uses more than the request. Parameters that it does not use are removed. */
function readsMore(source: Source, value: Node, known: FunctionNode | undefined): boolean {
  return isFunction(value) ? !dropParameters(source, value, 1) : known !== undefined && known.params.length > 1;
}

/** A function as code that can be called. */
function calleeCode(source: Source, value: Node): string {
  return value.type === "Identifier" || value.type === "MemberExpression" ? source.text(value) : `(${source.text(value)})`;
}

function hasCall(node: Node): boolean {
  return some(node, ({ type }) => type === "CallExpression" || type === "OptionalCallExpression");
}

/** Code for `body`, or for a call that sends it. Undefined if it is a function. */
export function messageCode(source: Source, property: Property): string | undefined {
  if (isFunctionProperty(property) || property.type === "ObjectMethod") return undefined;
  return source.text(property.value);
}

/** What a library answers with, as its options say. */
export interface GivenAnswer {
  readonly message: Property | undefined;
  readonly statusCode: Property | undefined;
  readonly handler: Property | undefined;
  /** 429 by default. */
  readonly status: ReturnType<typeof constantOf>;
  /** The code of the message; undefined if it is a function. */
  readonly text: string | undefined;
}

const defaultMessage = JSON.stringify("Too many requests, please try again later.");

/** Takes `message`, `statusCode` and `handler`, which several libraries have. */
export function takeAnswer(source: Source, options: Options): GivenAnswer {
  const [message, statusCode, handler] = [options.take("message"), options.take("statusCode"), options.take("handler")];
  return {
    message,
    statusCode,
    handler,
    status: statusCode === undefined ? 429 : constantOf(valueIn(statusCode)),
    text: message === undefined ? defaultMessage : messageCode(source, message),
  };
}

/**
 * `handler` becomes `onLimited`, with the status and the message in it.
 * @param kept how many parameters `onLimited` takes of it. `next` and the options come after them.
 */
export function rewriteHandler(
  source: Source,
  options: Options,
  handler: Property,
  answer: GivenAnswer,
  kept: number,
  advice: string,
): void {
  const { message, statusCode, status, text } = answer;
  const value = source.functionOf(valueIn(handler));
  options.rename(handler, "onLimited");
  const next = value && parameterName(value, kept);
  const usesNext = value !== undefined && next !== undefined && references(value.body, next).length > 0;
  const canInline = isFunctionProperty(handler) && text !== undefined && typeof status === "number" && !usesNext;
  if (value !== undefined && canInline && inlineOptions(source, value, kept + 1, { statusCode: `${status}`, message: text })) {
    if (value.params.length > kept) source.edits.remove(end(value.params[kept - 1] as Node), end(value.params.at(-1) as Node));
  } else if (value === undefined || value.params.length > kept) source.handle(handler, advice);
  options.remove(message);
  options.remove(statusCode);
}

/** Replaces `options.statusCode` and `options.message` in a handler. @returns whether nothing else of the options is used. */
function inlineOptions(source: Source, node: FunctionNode, index: number, values: Readonly<Record<string, string>>): boolean {
  const name = parameterName(node, index);
  if (name === undefined) return node.params.length <= index;
  const members: [Node, string][] = [];
  let others = references(node.body, name).length;
  walk(node.body, (inner) => {
    const property = propertyName(inner);
    const value = property === undefined ? undefined : entryOf(values, property);
    if (value === undefined || (inner.type !== "MemberExpression" && inner.type !== "OptionalMemberExpression")) return;
    if (inner.object.type !== "Identifier" || inner.object.name !== name) return;
    members.push([inner, value]);
    others--;
  });
  if (others > 0) return false;
  for (const [member, value] of members) source.replace(member, value);
  return true;
}

/** `skipFailedRequests`, `skipSuccessfulRequests` and `requestWasSuccessful` become `refundWhen`. */
export function rewriteRefunds(
  source: Source,
  options: Options,
  statusOf: (parameters: readonly (string | undefined)[]) => string[],
): void {
  const failed = options.take("skipFailedRequests");
  const succeeded = options.take("skipSuccessfulRequests");
  const judge = options.take("requestWasSuccessful");
  const given = [failed, succeeded].filter((property) => property !== undefined && constantOf(valueIn(property)) !== false);
  const [first] = given;
  if (first === undefined) {
    for (const property of [failed, succeeded, judge]) options.remove(property);
    return;
  }
  if (given.length === 2 || constantOf(valueIn(first)) !== true) {
    source.handle(first, "Write `refundWhen: (status) => ...`: true for the responses that count for nothing.");
    return;
  }
  const code = judge === undefined ? (first === failed ? "status >= 400" : "status < 400") : judgeCode(source, judge, statusOf);
  if (code === undefined) {
    source.handle(judge ?? first, "`refundWhen` gets the status only. Write `refundWhen: (status) => ...`.");
    return;
  }
  options.set(first, `refundWhen: (status) => ${judge !== undefined && first === failed ? `!(${code})` : code}`);
  for (const property of [failed, succeeded, judge]) if (property !== first) options.remove(property);
}

/** The condition of `requestWasSuccessful` in terms of `status`; undefined if it reads more than the status. */
function judgeCode(
  source: Source,
  judge: Property,
  statusOf: (parameters: readonly (string | undefined)[]) => string[],
): string | undefined {
  const value = valueIn(judge);
  if (value.type !== "ArrowFunctionExpression" || value.body.type === "BlockStatement") return undefined;
  const names = value.params.map((_, i) => parameterName(value, i));
  const text = source.text(value.body);
  const replaced = statusOf(names).reduce((code, status) => code.replaceAll(status, "status"), text);
  const reads = names.some((name) => name !== undefined && new RegExp(`\\b${name}\\b`).test(replaced));
  return reads ? undefined : replaced;
}

/**
 * A function of the request that returns a key becomes `key`. Addresses in it become `ip`, which joins the addresses of an IPv6 network.
 * @param isAddress whether an expression is the client's address.
 */
export function rewriteKeyFunction(
  rewriting: Rewriting,
  options: Options,
  given: Property | undefined,
  requestName: string,
  isAddress: (node: Node, request: string) => boolean,
): void {
  const { source } = rewriting;
  if (given === undefined) return;
  const value = valueIn(given);
  if (/x-forwarded-for|x-real-ip|cf-connecting-ip/i.test(source.text(value))) {
    source.note(given, "Anyone can send this header. Remove `key` to count by address, and write `clientIp` for the proxy in front.");
  }
  if (readsMore(source, value, source.functionOf(value))) {
    source.handle(given, "`key` gets the request and { ip, route }, and not the response. Rewrite what uses it.");
    return;
  }
  if (!isFunction(value)) {
    // `key` has a second parameter, which such a function does not expect.
    options.set(given, `key: (${requestName}) => ${calleeCode(source, value)}(${requestName})`);
    source.note(
      given,
      "If this function returns an address, write `ip` of key: (request, { ip }) => ..., which joins the addresses of a network.",
    );
    return;
  }
  const request = parameterName(value, 0);
  const addresses = request === undefined ? [] : addressesIn(value.body, (node) => isAddress(node, request));
  if (addresses.length === 1 && bare(value.body) === addresses[0]) {
    rewriting.done(value);
    options.remove(given);
    return;
  }
  options.rename(given, "key");
  if (addresses.length === 0) return;
  const [name, second] = references(value, "ip").length > 0 ? ["address", "{ ip: address }"] : ["ip", "{ ip }"];
  for (const address of addresses) {
    rewriting.done(address);
    source.replace(address, name);
  }
  const parameter = value.params[0] as Node;
  const hasParentheses = source.code.slice(start(value), start(parameter)).includes("(");
  if (hasParentheses) source.edits.appendLeft(end(parameter), `, ${second}`);
  else source.replace(parameter, `(${source.text(parameter)}, ${second})`);
}

/** Where a key function reads the client's address, with a default for a request without one: `req.ip ?? ""`. */
function addressesIn(body: Node, isAddress: (node: Node) => boolean): Node[] {
  const found: Node[] = [];
  walk(body, (node) => {
    if (found.some((outer) => isInside(node, outer))) return;
    const hasDefault = node.type === "LogicalExpression" && constantOf(node.right) !== undefined;
    const inner = hasDefault ? node.left : node.type === "TSNonNullExpression" ? node.expression : node;
    if (isAddress(bare(inner))) found.push(node);
  });
  return found;
}

/** Whether a node reads a property of a variable. */
export function isMemberOf(node: Node, variable: string): boolean {
  const isMember = node.type === "MemberExpression" || node.type === "OptionalMemberExpression";
  return isMember && node.object.type === "Identifier" && node.object.name === variable;
}
