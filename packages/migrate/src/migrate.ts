import { handleProxies } from "./app-code.js";
import { rules as expressRateLimit } from "./express-rate-limit.js";
import { rules as fastifyRateLimit } from "./fastify-rate-limit.js";
import { rules as honoRateLimiter } from "./hono-rate-limiter.js";
import { rewriteImports } from "./imports.js";
import { rules as koaRatelimit } from "./koa-ratelimit.js";
import { type LimiterRules, rateLimiterFlexible, reportLimiters, upstashRatelimit } from "./limiters.js";
import { rules as nestjsThrottler } from "./nestjs-throttler.js";
import { type MiddlewareRules, Rewriting } from "./rewriting.js";
import { type Remark, Source } from "./source.js";
import { end, start } from "./source-text.js";

export type { Remark };

/** Their calls are rewritten. */
type Middleware = "express-rate-limit" | "koa-ratelimit" | "hono-rate-limiter" | "@fastify/rate-limit" | "@nestjs/throttler";
/** Their calls are only reported. */
type Limiter = "rate-limiter-flexible" | "@upstash/ratelimit";

/** The libraries that `migrate` knows. */
export type Library = Middleware | Limiter;

const middlewares: Readonly<Record<Middleware, MiddlewareRules>> = {
  "express-rate-limit": expressRateLimit,
  "koa-ratelimit": koaRatelimit,
  "hono-rate-limiter": honoRateLimiter,
  "@fastify/rate-limit": fastifyRateLimit,
  "@nestjs/throttler": nestjsThrottler,
};

export const limiters: Readonly<Record<Limiter, LimiterRules>> = {
  "rate-limiter-flexible": rateLimiterFlexible,
  "@upstash/ratelimit": upstashRatelimit,
};

/** Whether the library ignores what is rewritten, as it stays for the rest of the app. */
export function isWhole(library: Library): boolean {
  return library in middlewares && middlewares[library as Middleware].isWhole === true;
}

export const libraries: readonly Library[] = [...Object.keys(middlewares), ...Object.keys(limiters)] as Library[];

/** A call that builds a limit. */
export interface MigratedCall {
  readonly line: number;
  readonly before: string;
  /** The new call; undefined if it stays as it is, because something must be done by hand. */
  readonly after: string | undefined;
}

/** A file rewritten. */
export interface Migration {
  readonly code: string;
  readonly calls: readonly MigratedCall[];
  /** What is left to do by hand. */
  readonly byHand: readonly Remark[];
  /** What changes, or is worth a look. */
  readonly notes: readonly Remark[];
  /** The packages that the new code imports. */
  readonly packages: readonly string[];
}

/**
 * Rewrites the calls of a middleware in a file. A call is rewritten whole, or stays as it is and is left to do by hand.
 * Calls of a limiter are only reported.
 * @param file its name, which says whether it is TypeScript.
 * @returns undefined if the file does not use the library.
 * @throws SyntaxError if a file that has its name cannot be parsed.
 */
export function migrate(library: Library, file: string, code: string): Migration | undefined {
  // Most files of an app have none of these words, and some of them cannot be parsed.
  if (!wordsOf(library).some((word) => code.includes(word))) return undefined;
  const source = new Source(file, code);
  if (isLimiter(library)) {
    const calls = reportLimiters(source, library, limiters[library]);
    return calls && { code, calls: calls.map((node) => callOf(source, node, undefined)), ...remarksOf(source), packages: [] };
  }
  const rules: MiddlewareRules = middlewares[library];
  const left = callsByHand(new Source(file, code), rules);
  const rewriting = new Rewriting(source, rules, new Set(left.keys()));
  if (rewriting.imports.length === 0 && rewriting.calls.length === 0 && source.byHand.length === 0) return undefined;
  for (const call of rewriting.rewritten) rules.rewrite(rewriting, call);
  if (rewriting.calls.length === 0) source.handleImports(rewriting.imports);
  source.byHand.push(...[...left.values()].flat());
  if (rewriting.rewritten.length > 0) {
    rules.rewriteReaders(rewriting);
    handleProxies(source);
    rewriteImports(rewriting, rules);
  }
  return {
    code: source.edits.toString(),
    calls: rewriting.calls.map((call) => {
      const after = !left.has(start(call.node)) ? source.edits.slice(start(call.node), end(call.node)) : undefined;
      return callOf(source, call.node, after);
    }),
    ...remarksOf(source),
    packages: rewriting.rewritten.length === 0 ? [] : [...new Set([rules.ours, ...rewriting.needed.keys()])],
  };
}

function isLimiter(library: Library): library is Limiter {
  return library in limiters;
}

/** Words of which a file that uses the library has one: its modules, or an option of routes that do not import it. */
function wordsOf(library: Library): readonly string[] {
  if (isLimiter(library)) return [library];
  const { modules } = middlewares[library];
  return library === "@fastify/rate-limit" ? [...modules, "rateLimit"] : modules;
}

/** Tries to rewrite each call. @returns what must be done by hand, by the position of the call. */
function callsByHand(source: Source, rules: MiddlewareRules): Map<number, Remark[]> {
  const trial = new Rewriting(source, rules, new Set());
  const left = new Map<number, Remark[]>();
  for (const call of trial.calls) {
    const before = source.byHand.length;
    trial.checkPlace(call);
    rules.rewrite(trial, call);
    if (source.byHand.length > before) left.set(start(call.node), source.byHand.slice(before));
  }
  if (rules.isWhole === true && left.size > 0) for (const { node } of trial.calls) if (!left.has(start(node))) left.set(start(node), []);
  return left;
}

function callOf(source: Source, node: Parameters<Source["text"]>[0], after: string | undefined): MigratedCall {
  return { line: node.loc?.start.line ?? 1, before: source.text(node), after };
}

function remarksOf({ byHand, notes }: Source): Pick<Migration, "byHand" | "notes"> {
  const sorted = (remarks: readonly Remark[]): Remark[] =>
    [...new Map(remarks.map((remark) => [JSON.stringify(remark), remark])).values()].sort((a, b) => a.line - b.line || a.column - b.column);
  return { byHand: sorted(byHand), notes: sorted(notes) };
}
