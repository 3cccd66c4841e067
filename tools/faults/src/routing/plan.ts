import type { Random } from "./random.js";

/** A route, in the words of a rule. */
export interface Route {
  readonly pattern: string;
  readonly method: "GET" | "POST" | "ALL";
}

/** What happens to a path before it meets the routes. */
export type Rewrite =
  /** The first segment is taken away. */
  | { readonly strip: string }
  /** One beginning is put in place of another. */
  | { readonly from: string; readonly to: string };

/** An app or a part of one that is mounted. What stands in it comes in the order of these fields. */
export interface Level {
  /** In the words of a rule; "" for the whole app. */
  readonly mount: string;
  /** Whether it is an app of its own, where the framework tells one from a router. */
  readonly app: boolean;
  /** Mounts that do something and let the request pass. */
  readonly passed: readonly string[];
  readonly rewrites: readonly Rewrite[];
  /** Whether the limit stands here, before all routes. */
  readonly limited: boolean;
  /** Files under a path: `downloads/big.zip`. Without a name there are none. */
  readonly files: string | undefined;
  readonly routes: readonly Route[];
  readonly below: readonly Level[];
}

/** What a framework can express. */
export interface Abilities {
  /** Mount paths of parts. */
  readonly mounts: readonly string[];
  readonly files: boolean;
  readonly rewrites: boolean;
}

const routes = ["/", "/login", "/:id", "/:id/reset", "/items/:id", "/a/:b/:c", "/files/*", "/api/login", "/reset", "/login/", "/Login"];

const rewrites: readonly Rewrite[] = [
  { strip: "/en" },
  { strip: "/v1" },
  { from: "/old", to: "/api" },
  { from: "/l", to: "/login" },
  { from: "/me", to: "/users/42" },
];

/** A random app with one limit, which stands before all routes that it can be before. */
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
        pattern: random.from(routes),
        method: random.from(["GET", "POST", "ALL"] as const),
      })),
      below: at < depth ? [level(at + 1)] : [],
    };
  };
  return level(0);
}

/** A handler with the rule that is for it. */
export interface Handler {
  readonly name: string;
  readonly path: string;
  readonly method: Route["method"];
}

/** The full path of a route, as a rule writes it. */
export function joined(mount: string, pattern: string): string {
  return `${mount}${pattern}`.replace(/\/{2,}/g, "/") || "/";
}

/** The name of a handler, by how deep it is mounted. */
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

/** The file that is served. */
export const file = "downloads/big.zip";

export function rewritten(url: string, rewrite: Rewrite): string {
  const [from, to] = "strip" in rewrite ? [rewrite.strip, ""] : [rewrite.from, rewrite.to];
  if (!url.startsWith(from) || !["/", undefined].includes(url[from.length])) return url;
  return `${to}${url.slice(from.length)}` || "/";
}
