import type { Node } from "@babel/types";
import { argument, bare, type CallNode, constantOf, entryOf, isMember, nameOfHolder, propertyName, walk } from "./nodes.js";
import { propertyOf } from "./options.js";
import type { Source } from "./source.js";
import { end, start } from "./source-text.js";
import { durationCode } from "./write.js";

// A limiter may be exported, passed on and called anywhere, and its methods answer and fail in another way than Floodgate's. A call that
// is rewritten where it is made, and not where it is used, limits nothing. So each is reported, and none is rewritten.

/** What to write instead of a library's limiters. */
export interface LimiterRules {
  /** What to write for a class; undefined if it builds no limiter. */
  classOf(exported: string, made: CallNode, source: Source): string | undefined;
  /** What to write for an option of a class. */
  readonly options: Readonly<Record<string, string>>;
  /** What to write for a method that only such limiters have. */
  readonly methods: Readonly<Record<string, string>>;
  /** The same for methods that much else has too: reported for limiters that the file makes. */
  readonly commonMethods: Readonly<Record<string, string>>;
}

/** The store in place of a class of rate-limiter-flexible. */
const stores: readonly (readonly [RegExp, string])[] = [
  [/Memory/, "memoryStore()"],
  [/Redis|Valkey/, "redisStore(client)"],
  [/Postgres/, "databaseStore(postgres(pool))"],
  [/MySQL/, "databaseStore(mysql(pool))"],
  [/SQLite/, "databaseStore(sqlite(database))"],
  [/Cluster/, "clusterStore()"],
];

export const rateLimiterFlexible: LimiterRules = {
  classOf: (exported, made, source) => {
    if (/^(RateLimiterRes|RateLimiterAbstract)$/.test(exported)) return undefined;
    if (exported === "RateLimiterQueue") return "Write leakyBucket({ capacity, leak, every }), and wait `delayMs` of the decision.";
    if (exported === "RateLimiterUnion") return "Write consumeAll([{ limiter, key }, ...]): all are charged, or none.";
    if (exported === "BurstyRateLimiter") return "Write one limiter with gcra({ limit, window, burst }).";
    if (exported === "RLWrapperBlackAndWhite")
      return "Write `exempt: { ips, keys }` of `rateLimit`, and reject whom you block before the limit.";
    const [, store] = stores.find(([name]) => name.test(exported)) ?? [];
    return `Write createLimiter({ name, policy: ${fixedWindow(made, source)}, store }) of @floodgate/core, where store is ${store ?? "one of docs/choosing-a-store.md, or of your own"}. Or, in an app, rateLimit({ ... }) as middleware.`;
  },
  options: {
    blockDuration: '`blockDuration`: after a rejection, call limiter.block(key, "10m"). `rateLimit` has `ban`.',
    execEvenly: "`execEvenly`: write leakyBucket({ capacity, leak, every }), and wait `delayMs` of the decision.",
    insuranceLimiter: "`insuranceLimiter`: write `onStoreError: memoryStore()`.",
  },
  methods: {
    consume: "`consume` rejects its promise at the limit. Write const { allowed, retryAfterMs } = await limiter.consume(key, { cost }).",
    penalty: "`penalty`: write limiter.settle(key, decision, cost), which charges a request more.",
    reward: "`reward`: write limiter.refund(key, decision), which gives a request back.",
    msBeforeNext: "`msBeforeNext`: write `retryAfterMs` of the decision, or `resetAfterMs`.",
    remainingPoints: "`remainingPoints`: write `remaining` of the decision.",
    consumedPoints: "`consumedPoints`: write `used` of the decision.",
  },
  commonMethods: {
    get: "`get`: write limiter.peek(key), a decision with `allowed`, `used` and `remaining`, never null.",
    delete: "`delete`: write limiter.reset(key).",
    block: '`block`: write limiter.block(key, "1h"), with a duration and its unit.',
    set: "`set`: a limiter has no equal.",
  },
};

export const upstashRatelimit: LimiterRules = {
  classOf: (exported, made, source) => {
    if (!/^(Region|MultiRegion)?[rR]atelimit$/i.test(exported)) return undefined;
    if (exported.startsWith("Multi")) return "Floodgate has no limit over several regions.";
    const text = source.text(made);
    const policy = /tokenBucket/.test(text)
      ? 'tokenBucket({ capacity: 10, refill: 5, every: "10s", style: "interval" })'
      : `${/fixedWindow/i.test(text) ? "fixedWindow" : "slidingWindowCounter"}({ limit: 10, window: "10s" })`;
    return `Write createLimiter({ name, policy: ${policy}, store: redisStore(redis) }) of @floodgate/core, with your numbers and the client that you have. Or, in an app, rateLimit({ ... }) as middleware.`;
  },
  options: {
    enableProtection: '`enableProtection`: reject such clients before the limit, or call limiter.block(key, "1d").',
    dynamicLimits: "`dynamicLimits`: write `rules` in a file or in Redis, which change while the server runs.",
  },
  methods: {
    limit: "`limit`: write const { allowed, remaining, retryAfterMs, resetAfterMs } = await limiter.consume(key, { cost }).",
    blockUntilReady: "`blockUntilReady`: wait `retryAfterMs` of the decision.",
    getRemaining: "`getRemaining`: write limiter.peek(key).",
    resetUsedTokens: "`resetUsedTokens`: write limiter.reset(key).",
  },
  commonMethods: {},
};

/** Reports what a file makes of a library's limiters, and how it uses them. @returns the calls; undefined if it does not import the library. */
export function reportLimiters(source: Source, library: string, rules: LimiterRules): Node[] | undefined {
  const imports = source.imports([library]);
  source.handleLoads(imports, []);
  if (imports.length === 0 && source.byHand.length === 0) return undefined;
  const found: Node[] = [];
  const report = (node: Node, message: string): void => {
    found.push(node);
    source.handle(node, message);
  };
  const limiters = new Set<string>();
  walk(source.program, (node) => {
    if (node.type !== "NewExpression") return;
    const exported = source.exported(node.callee, imports)?.exported;
    const what = exported === undefined ? undefined : rules.classOf(exported, node, source);
    if (what === undefined) return;
    report(node, what);
    for (const name of [...source.around(node)].map(nameOfHolder)) if (name !== undefined) limiters.add(name);
    for (const [name, hint] of Object.entries(rules.options)) {
      const option = propertyOf(argument(node, 0), name);
      if (option !== undefined) source.handle(option, hint);
    }
  });
  walk(source.program, (node, parent) => {
    if (!isMember(node)) return;
    const method = propertyName(node) ?? "";
    const own = entryOf(rules.methods, method);
    // Queries of databases have a `limit` too, which takes a number.
    const isQuery =
      method === "limit" && (parent?.type !== "CallExpression" || typeof constantOf(parent.arguments[0] ?? node) === "number");
    if (own !== undefined) {
      if (!isQuery) report(node, own);
      return;
    }
    const object = bare(node.object);
    const holder = object.type === "Identifier" ? object.name : propertyName(object);
    const common = entryOf(rules.commonMethods, method);
    if (common !== undefined && holder !== undefined && limiters.has(holder)) report(node, common);
  });
  if (found.length === 0) source.handleImports(imports);
  return found.sort((a, b) => start(a) - start(b) || end(b) - end(a));
}

/** `points` and `duration` in seconds as a policy, as far as the call says them. */
function fixedWindow(made: CallNode, source: Source): string {
  const [points, duration] = ["points", "duration"].map((name) => propertyOf(argument(made, 0), name));
  const seconds = duration && constantOf(duration);
  const isWhole = typeof seconds === "number" && Number.isInteger(seconds) && seconds > 0;
  return `fixedWindow({ limit${points === undefined ? "" : `: ${source.text(points)}`}, window${isWhole ? `: ${durationCode(seconds * 1000)}` : ""} })`;
}
