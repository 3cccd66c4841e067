import type { Random } from "./random.js";

/** A route, in rule notation. */
export interface Route {
  readonly pattern: string;
  readonly method: "GET" | "POST" | "ALL";
}

/** A rewrite of the path before the routes. */
export type Rewrite =
  /** Removes the first segment. */
  | { readonly strip: string }
  /** Replaces one prefix by another. */
  | { readonly from: string; readonly to: string };

/** An app, or a mounted part of one. Its contents run in the order of these fields. */
export interface Level {
  /** The mount path in rule notation; "" for the whole app. */
  readonly mount: string;
  /** Whether it is a sub-app instead of a router, in frameworks that have both. */
  readonly app: boolean;
  /** Mounts that pass the request on. */
  readonly passed: readonly string[];
  readonly rewrites: readonly Rewrite[];
  /** Whether the limit is mounted here, before all routes. */
  readonly limited: boolean;
  /** Static files under a path, such as `downloads/big.zip`; none if left out. */
  readonly files: string | undefined;
  readonly routes: readonly Route[];
  readonly below: readonly Level[];
}

/** The paths that a framework supports. */
export interface Abilities {
  /** Mount paths of parts. */
  readonly mounts: readonly string[];
  readonly files: boolean;
  readonly rewrites: boolean;
}

const routes = ["/", "/login", "/:id", "/:id/reset", "/items/:id", "/a/:b/:c", "/files/*", "/api/login", "/reset", "/login/", "/Login"];

/** Routes with unusual characters, and how they may be encoded. */
const unusualRoutes = [
  ...["/caf\u00e9", "/caf%C3%A9", "/\u0130", "/stra\u00dfe", "/%41", "/%2e", "/%zz", "/...", "/a.", "/a%2e", "/a.b", "/.well-known/x"],
  ...["/a b", "/a%20b", "/a%25b", "/a%2fb", "/A%2Fb", "/a;b", "/a%3bb", "/x/%3Aid", "/a~b", "/a,b", "/a=b", "/a@b", "/a'b", "/$a", "/a&b"],
];

const rewrites: readonly Rewrite[] = [
  { strip: "/en" },
  { strip: "/v1" },
  { from: "/old", to: "/api" },
  { from: "/l", to: "/login" },
  { from: "/me", to: "/users/42" },
];

/** A random app with one limit, mounted before as many routes as possible. */
export function randomPlan(random: Random, abilities: Abilities): Level {
  const depth = random.below(4);
  const limitedAt = random.below(depth + 1);
  const level = (at: number): Level => {
    const mayRewrite = abilities.rewrites && at <= limitedAt && random.oneIn(3);
    return {
      mount: at === 0 ? "" : random.from(abilities.mounts),
      app: random.oneIn(2),
      passed: at <= limitedAt && random.oneIn(3) ? [random.from(abilities.mounts)] : [],
      rewrites: mayRewrite ? [random.from(rewrites)] : [],
      limited: at === limitedAt,
      files: abilities.files && random.oneIn(3) ? random.from(["", "/static", "/:dir"]) : undefined,
      routes: Array.from({ length: 1 + random.below(3) }, () => ({
        pattern: random.from(random.oneIn(2) ? routes : unusualRoutes),
        method: random.from(["GET", "POST", "ALL"] as const),
      })),
      below: at < depth ? [level(at + 1)] : [],
    };
  };
  return level(0);
}

/** A handler and its rule. */
export interface Handler {
  readonly name: string;
  readonly path: string;
  readonly method: Route["method"];
}

/** The full path of a route, in rule notation. */
export function joined(mount: string, pattern: string): string {
  return `${mount}${pattern}`.replace(/\/{2,}/g, "/") || "/";
}

/** The name of a handler, from its mount depth. */
export function handlerName(depth: number, route: number | "files"): string {
  return `${depth}-${route}`;
}

/** The handlers behind the limit. */
export function limitedHandlers(plan: Level): Handler[] {
  const handlers: Handler[] = [];
  const walk = (level: Level, base: string, depth: number, within: boolean): void => {
    const limited = within || level.limited;
    const mount = joined(base, level.mount);
    if (limited) {
      level.routes.forEach(({ pattern, method }, i) => {
        handlers.push({ name: handlerName(depth, i), path: joined(`${mount}/`, pattern), method });
      });
      if (level.files !== undefined) {
        handlers.push({ name: handlerName(depth, "files"), path: joined(`${mount}/${level.files}/`, file), method: "GET" });
      }
    }
    for (const one of level.below) walk(one, mount, depth + 1, limited);
  };
  walk(plan, "", 0, false);
  return handlers;
}

/** The served file. */
export const file = "downloads/big.zip";

export function rewritten(url: string, rewrite: Rewrite): string {
  const [from, to] = "strip" in rewrite ? [rewrite.strip, ""] : [rewrite.from, rewrite.to];
  if (!url.startsWith(from) || !["/", undefined].includes(url[from.length])) return url;
  return `${to}${url.slice(from.length)}` || "/";
}
