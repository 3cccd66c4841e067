import type { KeyFunction, Rule, RuleSource } from "@floodgate/core";
import type { LimitOptions, RateLimitOptions } from "@floodgate/core/adapter";
import type { LimitSetup, RequestView } from "./adapter.js";

type View<Req> = (request: Req) => RequestView;

/** The neutral options as functions of the framework's request. `onLimited` is left out: each adapter has its own parameters. */
export function forRequests<Req>(setup: LimitSetup, view: View<Req>): RateLimitOptions<Req, string> {
  const { onLimited: _, keys, costs, skip, plan, clientIp, rules, ...limit } = setup;
  const options = limitFor(limit, view) as RateLimitOptions<Req, string>;
  if (keys !== undefined) options.keys = mapped(keys, (key) => keyFor(key, view));
  if (costs !== undefined) options.costs = mapped(costs, (cost) => of(cost, view));
  if (skip !== undefined) options.skip = of(skip, view);
  if (plan !== undefined) options.plan = of(plan, view);
  if (clientIp !== undefined) options.clientIp = typeof clientIp === "function" ? of(clientIp, view) : clientIp;
  if (rules !== undefined) {
    options.rules = Array.isArray(rules)
      ? (rules as readonly Rule<RequestView, string>[]).map((rule) => ruleFor(rule, view))
      : (rules as RuleSource);
  }
  return options;
}

/** A middleware that calls `make` for every request. */
export function madeAnew<Middleware extends (...args: never) => unknown>(make: () => Middleware): Middleware {
  return new Proxy(make(), { apply: (_, self, args) => Reflect.apply(make(), self, args) });
}

/** Applies `next` to a value, or to a promise's value later. Synchronous values stay synchronous. */
export function andThen<T, R>(value: T | PromiseLike<T>, next: (value: T) => R): R | PromiseLike<R> {
  const isPromise = typeof value === "object" && value !== null && "then" in value;
  return isPromise ? (value as PromiseLike<T>).then(next) : next(value as T);
}

function ruleFor<Req>({ match, ...rule }: Rule<RequestView, string>, view: View<Req>): Rule<Req, string> {
  const fits = typeof match === "function" ? of(match, view) : match;
  return { ...limitFor(rule, view), name: rule.name, ...(fits === undefined ? {} : { match: fits }) };
}

/** Converts the options that rules and middlewares share. */
function limitFor<Req>(
  { policy, key, cost, settle, ...plain }: LimitOptions<RequestView, string>,
  view: View<Req>,
): LimitOptions<Req, string> {
  const options: LimitOptions<Req, string> = { ...plain };
  if (policy !== undefined) options.policy = typeof policy === "function" ? policyFor(policy, view) : policy;
  if (key !== undefined) options.key = typeof key === "function" ? keyFor(key, view) : key;
  if (cost !== undefined) options.cost = typeof cost === "function" ? of(cost, view) : cost;
  if (settle !== undefined) options.settle = typeof settle === "function" ? of(settle, view) : settle;
  return options;
}

function mapped<From, To>(all: Readonly<Record<string, From>>, make: (one: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(all).map(([name, one]) => [name, make(one)]));
}

function of<Req, T, More extends unknown[]>(
  neutral: (request: RequestView, ...more: More) => T,
  view: View<Req>,
): (request: Req, ...more: More) => T {
  return typeof neutral === "function" ? (request, ...more) => neutral(view(request), ...more) : neutral;
}

/** Keeps the number of parameters of the policy function. */
function policyFor<Req>(policy: Extract<LimitOptions<RequestView>["policy"], (...more: never) => unknown>, view: View<Req>) {
  return policy.length === 0 ? (policy as () => ReturnType<typeof policy>) : of(policy, view);
}

/** Keeps the number of parameters of the key function. */
function keyFor<Req>(key: KeyFunction<RequestView>, view: View<Req>): KeyFunction<Req> {
  if (typeof key !== "function") return key;
  return key.length < 2
    ? (request) => (key as (request: RequestView) => ReturnType<typeof key>)(view(request))
    : (request, info) => key(view(request), info);
}
