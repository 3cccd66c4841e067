import type { Node } from "@babel/types";
import {
  bare,
  constantOf,
  type FunctionNode,
  isFunction,
  isMember,
  parameterName,
  propertyName,
  references,
  returnsBoolean,
  some,
  walk,
} from "./nodes.js";
import { nameOf, type Option, type Options } from "./options.js";
import type { Rewriting } from "./rewriting.js";
import type { Source } from "./source.js";
import { end, isInside, start } from "./source-text.js";
import { durationCode, msOfWords } from "./write.js";

// Options that express-rate-limit and hono-rate-limiter have in common, and koa-ratelimit in part.

/** A duration as our code: as a text if the file says how long it is. */
function windowCode(window: Option): string {
  const value = window.constant;
  const ms = typeof value === "string" ? msOfWords(value) : value;
  if (typeof ms === "number" && Number.isInteger(ms) && ms > 0) {
    if (ms < 1000) window.note(`This is ${ms} milliseconds, as before. If you meant seconds, write window: "${ms}s".`);
    return durationCode(ms);
  }
  if (value !== undefined || isFunction(window.value)) window.handle('Write a window with a whole number and a unit: window: "15m".');
  // @fastify/rate-limit reads texts with a unit too.
  return window.isTextOfEnvironment && nameOf(window.property) !== "timeWindow" ? `Number(${window.code})` : window.code;
}

/** A duration that is not constant stays: a number of milliseconds that is a multiple of 1000 is a duration of ours. */
function rewriteWindow(window: Option): void {
  const code = windowCode(window);
  window.set(`window: ${code}`);
  if (code.startsWith('"')) return;
  window.note("A `window` that is a number must be a multiple of 1000. TypeScript and the start of the app tell you if it is not.");
}

/** For routes and handlers that take one of the two from their app. */
export const bothNeeded = "The other of `limit` and `window` is as in the app's limit, if that has it. Else write both.";

/**
 * `limit`, a number or a function of the request. A function becomes a policy.
 * @param defaults what a call without them means; undefined if they come from elsewhere.
 */
export function rewriteLimit(
  rewriting: Rewriting,
  options: Options,
  { limit, window }: { limit: Option | undefined; window: Option | undefined },
  defaults: { limit: number; windowMs: number } | undefined,
): void {
  const { edits } = rewriting.source;
  if (limit !== undefined) checkLimit(rewriting.source, limit);
  else if (defaults !== undefined) options.add(`limit: ${defaults.limit}`);
  const known = limit?.function;
  if (limit === undefined || known === undefined) {
    if (limit?.isTextOfEnvironment) limit.set(`limit: Number(${limit.code})`);
    else limit?.rename("limit");
    if (window !== undefined) rewriteWindow(window);
    else if (defaults !== undefined) options.add(`window: ${durationCode(defaults.windowMs)}`);
    return;
  }
  const code = window === undefined ? durationCode(defaults?.windowMs ?? 60_000) : windowCode(window);
  options.remove(window);
  rewriting.need("slidingWindowCounter", limit.property);
  const { value, property } = limit;
  const takesMore = readsMore(rewriting.source, limit);
  if (value.type === "ArrowFunctionExpression" && value.body.type !== "BlockStatement" && !takesMore) {
    limit.rename("policy");
    const isPromise = value.async && !some(value.body, ({ type }) => type === "AwaitExpression");
    withoutParentheses(rewriting.source, value.body);
    edits.appendRight(start(value.body), `slidingWindowCounter({ limit: ${isPromise ? "await (" : ""}`);
    edits.appendLeft(end(value.body), `${isPromise ? ")" : ""}, window: ${code} })`);
  } else if (property.type === "ObjectProperty" && !takesMore) {
    limit.set(
      `policy: async (request) => slidingWindowCounter({ limit: await ${calleeCode(rewriting.source, limit)}(request), window: ${code} })`,
    );
  } else {
    limit.handle("Write `policy: (request) => slidingWindowCounter({ limit, window })`. It gets only the request.");
  }
  limit.note("With a `policy` that is a function, `limiter.reset` fails until the first request. Prefer `plan` and `plans`.");
}

/** Reports a limit that means another thing here, or nothing. */
function checkLimit(source: Source, limit: Option): void {
  const given = source.knownValue(limit.value);
  const value = constantOf(given);
  const isZero = (node: Node, parent: Node | undefined): boolean =>
    constantOf(node) === 0 && (node === given || (parent !== undefined && isResult(node, parent)));
  if (value !== undefined && value !== 0 && !(Number.isInteger(value) && Number(value) > 0))
    limit.handle("`limit` must be a number, whole and at least 1: limit: 100.");
  walk(limit.function ?? given, (node, parent) => {
    const name = node.type === "Identifier" ? node.name : propertyName(node);
    if (isZero(node, parent))
      limit.handle(
        "A limit of 0 rejects everything here. If it means no limit, write skip: (request) => ...; else write the call by hand.",
      );
    if (name === "Infinity" || name === "POSITIVE_INFINITY" || name === "NaN") {
      source.handle(node, `\`${name}\` is not a limit. To limit nothing, write skip: (request) => ..., or do not mount the middleware.`);
    }
  });
}

/** Whether an expression around it, or a function, may have the value of a node. */
function isResult(node: Node, parent: Node): boolean {
  if (parent.type === "ConditionalExpression") return parent.test !== node;
  if (parent.type === "ArrowFunctionExpression") return parent.body === node;
  return parent.type === "LogicalExpression" || parent.type === "ReturnStatement";
}

/** Removes the parentheses around an expression. */
function withoutParentheses(source: Source, node: Node): void {
  const from = node.extra?.["parenStart"];
  if (typeof from !== "number") return;
  source.edits.remove(from, from + 1);
  const to = source.code.indexOf(")", end(node));
  source.edits.remove(to, to + 1);
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
export function rewriteSkip({ source }: Rewriting, skip: Option | undefined, request: string): void {
  if (skip === undefined) return;
  skip.rename("skip");
  const { value, function: known } = skip;
  if (readsMore(source, skip)) skip.handle("`skip` gets the request, and not the response. Rewrite what uses it.");
  else if (known !== undefined && returnsBoolean(known)) return;
  else if (value.type === "ObjectMethod") skip.handle("`skip` must answer true or false.");
  else if (value.type !== "ArrowFunctionExpression" || value.body.type === "BlockStatement") {
    // An option that is passed on may be missing.
    const call = source.mayBeMissing(value) ? "?.(" : "(";
    skip.set(`skip: async (${request}) => Boolean(await ${calleeCode(source, skip)}${call}${request}))`);
  } else {
    // A call may answer a promise, which is not false.
    const mayWait = value.async || some(value.body, ({ type }) => type === "CallExpression" || type === "OptionalCallExpression");
    withoutParentheses(source, value.body);
    if (mayWait && !value.async) source.edits.appendRight(start(value), "async ");
    source.edits.appendRight(start(value.body), mayWait ? "Boolean(await (" : "Boolean(");
    source.edits.appendLeft(end(value.body), mayWait ? "))" : ")");
  }
}

/** Whether a function uses more than the request. Parameters that it does not use are removed. */
function readsMore(source: Source, { value, function: known }: Option): boolean {
  return isFunction(value) ? !dropParameters(source, value, 1) : known !== undefined && known.params.length > 1;
}

/** A function as code that can be called. A parameter that it does not use has been removed from the edits. */
function calleeCode(source: Source, { value, code }: Option): string {
  if (isFunction(value)) return `(${source.edits.slice(start(value), end(value))})`;
  return value.type === "Identifier" || value.type === "MemberExpression" ? code : `(${code})`;
}

/**
 * `skipFailedRequests`, `skipSuccessfulRequests` and `requestWasSuccessful` become `refundWhen`.
 * @param statusOf the code that reads the status, by the parameters of `requestWasSuccessful`.
 */
export function rewriteRefunds(
  { source }: Rewriting,
  options: Options,
  statusOf: (parameters: readonly (string | undefined)[]) => string | undefined,
): void {
  const [failed, succeeded] = [options.take("skipFailedRequests"), options.take("skipSuccessfulRequests")];
  const judge = options.take("requestWasSuccessful");
  const given = [failed, succeeded].filter((option) => option !== undefined && option.constant !== false);
  const [first] = given;
  if (first === undefined) {
    options.remove(failed, succeeded, judge);
    return;
  }
  if (given.length === 2 || first.constant !== true) {
    first.handle("Write `refundWhen: (status) => ...`: true for the responses that count for nothing.");
    return;
  }
  const code = judge === undefined ? (first === failed ? "status >= 400" : "status < 400") : judgeCode(source, judge, statusOf);
  if (code === undefined) {
    judge?.handle("`refundWhen` gets the status only. Write `refundWhen: (status) => ...`.");
    return;
  }
  options.put(
    `refundWhen: (status) => ${judge !== undefined && first === failed ? `!(${code})` : code}`,
    first,
    ...[failed, succeeded, judge].filter((option) => option !== first),
  );
}

/** The condition of `requestWasSuccessful` in terms of `status`; undefined if it reads more than the status. */
function judgeCode(source: Source, { value }: Option, statusOf: Parameters<typeof rewriteRefunds>[2]): string | undefined {
  if (value.type !== "ArrowFunctionExpression" || value.body.type === "BlockStatement") return undefined;
  const names = value.params.map((_, i) => parameterName(value, i));
  const text = source.text(value.body);
  const status = statusOf(names);
  const replaced = status === undefined ? text : text.replaceAll(status, "status");
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
  key: Option | undefined,
  isAddress: (node: Node, request: string) => boolean,
): void {
  const { source } = rewriting;
  if (key === undefined) return;
  const { value, code } = key;
  if (/x-forwarded-for|(real|client|connecting)-ip/i.test(code)) {
    key.note("Anyone can send this header. Remove `key` to count by address, and write `clientIp` for the proxy in front.");
  }
  if (readsMore(source, key)) {
    key.handle("`key` gets the request and { ip, route }, and not the response. Rewrite what uses it.");
    return;
  }
  if (!isFunction(value)) {
    key.rename("key");
    key.note("If this function returns an address, write `ip` of key: (request, { ip }) => ..., which joins the addresses of a network.");
    return;
  }
  walk(value, (node, parent) => {
    if (propertyName(node) === "_id" && parent !== undefined && isResult(node, parent))
      key.note("A key is a text or a number. If `_id` is an ObjectId, write String(...) around it.");
  });
  const request = parameterName(value, 0);
  const addresses = request === undefined ? [] : addressesIn(value.body, (node) => isAddress(node, request));
  if (addresses.length === 1 && bare(value.body) === addresses[0]) {
    rewriting.done(value);
    options.remove(key);
    return;
  }
  key.rename("key");
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
    if (!found.some((outer) => isInside(node, outer)) && isAddress(withoutDefault(node))) found.push(node);
  });
  return found;
}

/** An expression without its default and TypeScript's additions: `req.ip` of `req.ip ?? ""`. */
export function withoutDefault(node: Node): Node {
  const inner = bare(node);
  return inner.type === "LogicalExpression" && constantOf(inner.right) !== undefined ? bare(inner.left) : inner;
}

/** Whether a node is `ip` of a variable. */
export function isIpOf(node: Node, variable: string): boolean {
  return isMember(node) && propertyName(node) === "ip" && node.object.type === "Identifier" && node.object.name === variable;
}
