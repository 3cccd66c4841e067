import type { KeyFunction, LimitOptions, RateLimitOptions } from "@floodgate/core";
import type { LimitSetup, RequestView } from "./adapter.js";

type View<Req> = (request: Req) => RequestView;

/** A limit's options with functions of the framework's request; `onLimited` is left out: its parameters are the adapter's own. */
export function forRequests<Req>(setup: LimitSetup, view: View<Req>): RateLimitOptions<Req, string> {
  const { onLimited: _, keys, skip, clientIp, rules, policy, key, cost, ...plain } = setup;
  const options: RateLimitOptions<Req, string> = { ...plain, ...limitFor({ policy, key, cost }, view) };
  if (keys !== undefined) options.keys = Object.fromEntries(Object.entries(keys).map(([name, own]) => [name, keyFor(own, view)]));
  if (skip !== undefined) options.skip = of(skip, view);
  if (clientIp !== undefined) options.clientIp = typeof clientIp === "function" ? of(clientIp, view) : clientIp;
  if (rules !== undefined) {
    options.rules = rules.map(({ policy, key, cost, ...rule }) => ({ ...rule, ...limitFor({ policy, key, cost }, view) }));
  }
  return options;
}

/** Goes on with a value now, or with a promise's value later, so that what is synchronous stays so. */
export function andThen<T, R>(value: T | PromiseLike<T>, next: (value: T) => R): R | PromiseLike<R> {
  const isPromise = typeof value === "object" && value !== null && "then" in value;
  return isPromise ? (value as PromiseLike<T>).then(next) : next(value as T);
}

type Functions<Req> = { [Option in "policy" | "key" | "cost"]: LimitOptions<Req, string>[Option] | undefined };

function limitFor<Req>({ policy, key, cost }: Functions<RequestView>, view: View<Req>): LimitOptions<Req, string> {
  const options: LimitOptions<Req, string> = {};
  if (policy !== undefined) options.policy = typeof policy === "function" ? of(policy, view) : policy;
  if (key !== undefined) options.key = typeof key === "function" ? keyFor(key, view) : key;
  if (cost !== undefined) options.cost = typeof cost === "function" ? of(cost, view) : cost;
  return options;
}

function of<Req, T>(neutral: (request: RequestView) => T, view: View<Req>): (request: Req) => T {
  return typeof neutral === "function" ? (request) => neutral(view(request)) : neutral;
}

/** With as many parameters as the key function has. */
function keyFor<Req>(key: KeyFunction<RequestView>, view: View<Req>): KeyFunction<Req> {
  if (typeof key !== "function") return key;
  return key.length < 2
    ? (request) => (key as (request: RequestView) => ReturnType<typeof key>)(view(request))
    : (request, info) => key(view(request), info);
}
