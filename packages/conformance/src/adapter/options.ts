import type { RateLimitOptions } from "@floodgate/core/adapter";
import type { LimitSetup, RequestView } from "./adapter.js";

type View<Req> = (request: Req) => RequestView;
type Options = Readonly<Record<string, unknown>>;
type OfRequest = (request: RequestView, ...more: unknown[]) => unknown;

/** The options that may be functions of the request, and those that hold such functions by name. */
const ofRequests = ["policy", "key", "cost", "settle", "skip", "plan", "clientIp", "match"];
const named = ["keys", "costs"];

/** The neutral options as functions of the framework's request. `onLimited` is left out: each adapter has its own parameters. */
export function forRequests<Req>({ onLimited: _, ...setup }: LimitSetup, view: View<Req>): RateLimitOptions<Req, string> {
  return converted(setup as Options, view) as RateLimitOptions<Req, string>;
}

function converted<Req>(options: Options, view: View<Req>): Options {
  return mapped(options, (value, name) => {
    if (name === "rules" && Array.isArray(value)) return value.map((rule: Options) => converted(rule, view));
    if (named.includes(name)) return mapped(value as Options, (one) => of(one, view));
    // A policy function without parameters is another kind of policy function.
    if (name === "policy" && (value as OfRequest).length === 0) return value;
    return ofRequests.includes(name) ? of(value, view) : value;
  });
}

function mapped(all: Options, make: (one: unknown, name: string) => unknown): Options {
  return Object.fromEntries(Object.entries(all).map(([name, one]) => [name, make(one, name)]));
}

/** Keeps the number of parameters: with two, a key function gets the address too. */
function of<Req>(neutral: unknown, view: View<Req>): unknown {
  if (typeof neutral !== "function") return neutral;
  const call = neutral as OfRequest;
  return call.length < 2
    ? (request: Req, ...more: unknown[]) => call(view(request), ...more)
    : (request: Req, second: unknown, ...more: unknown[]) => call(view(request), second, ...more);
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
