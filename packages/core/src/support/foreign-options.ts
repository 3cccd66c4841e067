import { shown } from "./errors.js";

type Given = Readonly<Record<string, unknown>>;

const leaky = 'policy: leakyBucket({ capacity: 10, leak: 5, every: "1s" })';
const bucket = 'policy: tokenBucket({ capacity: 20, refill: 10, every: "1s" })';
const calendar = 'policy: calendarWindow({ limit: 100, per: "day", timeZone: "UTC" })';
const denyCache = "Leave it out: redisStore has such a cache, which is on unless you write denyCache: false";

/** Our options as code to write. */
const examples: Given & Readonly<Record<string, string>> = {
  limit: "limit: 100",
  window: 'window: "15m"',
  capacity: "capacity: 20",
  burst: "burst: 20",
  refill: "refill: 10",
  leak: "leak: 5",
  every: 'every: "1s"',
  after: "after: 10",
  within: 'within: "1m"',
  for: 'for: "1h"',
  maxKeys: "maxKeys: 100000",
  prefix: 'prefix: "floodgate"',
  policy: 'policy: slidingWindowCounter({ limit: 100, window: "1m" })',
  key: 'key: (req) => req.user.id, a function of the request, or a name such as "ip"; a limiter takes it in consume(key)',
  cost: "cost: 1",
  ban: 'ban: { after: 10, within: "1m", for: "1h" }, or limiter.block(key, "1h")',
  exempt: 'exempt: { ips: ["10.0.0.0/8"] }, or skip: (req) => req.path === "/health"',
  name: 'name: "api"',
  store: "store: redisStore(redis) of @floodgate/store-redis, or memoryStore(), which is the default",
  skip: 'skip: (req) => req.path === "/health"',
  headers: 'headers: "standard", which is the default, "draft-7", "draft-6", "legacy", ["standard", "legacy"] or false',
  body: 'body: "Too many requests"',
  onLimited:
    'onLimited: (req, res) => res.status(429).send("Slow down"), in Koa (ctx) => { ctx.status = 429; ctx.body = "Slow down"; }, in Hono (c) => c.text("Slow down", 429)',
  refundWhen: "refundWhen: (status) => status < 400, which gives successes back, or status >= 400 for failures",
  decisionName: 'decisionName: "rateLimit"',
  clientIp: 'clientIp: { trustedHops: 1 }, or { trustedProxies: ["10.0.0.0/8"] }',
  ipv6Prefix: "ipv6Prefix: 56",
  keys: "keys: { user: (req) => req.user?.id }",
  costs: "costs: { items: (req) => req.body.items.length }",
  plan: "plan: (req) => req.user?.plan",
  rules: 'rules: [{ name, match, limit, window }], or a source: fileRules("limits.yaml"), redisRules(redis, key)',
  timeoutMs: "timeoutMs: 100",
  onStoreError: 'onStoreError: "allow", which is the default, "deny", or memoryStore()',
  keySecret: "keySecret: process.env.KEY_SECRET",
  receiptSecret: "receiptSecret: process.env.RECEIPT_SECRET",
  onEvent: 'onEvent: (event) => { if (event.type === "limited") console.log(event.name, event.key); }',
};

/** Options of other libraries and of frameworks, by ours that stand for them: the first that the place has. */
const foreign: readonly (readonly [ours: string, theirs: string])[] = [
  ["limit capacity after cost policy", "points limit capacity bucketSize maxTokens"],
  ["maxKeys limit capacity after cost policy", "max"],
  ["refill limit", "tokensPerInterval refillRate"],
  ["refill leak", "refill leak"],
  ["burst capacity", "burst"],
  ["window every within for policy", "windowMs timeWindow interval window every per"],
  ["for window every within policy", "duration"],
  ["after ban", "after"],
  ["within ban", "within"],
  ["for ban", "for"],
  ["window every policy", "ttl"],
  ["policy", "limiter"],
  ["for ban", "blockDuration exponentialBackoff"],
  ["prefix name", "keyPrefix prefix namespace identifier groupId"],
  ["key", "keyGenerator id getTracker generateKey"],
  ["refill leak cost", "rate"],
  ["exempt", "whiteList allowList"],
  ["skip", "skipIf ignoreUserAgents"],
  ["store", "redis storeClient db driver client binding storage cache"],
  [
    "headers",
    "standardHeaders legacyHeaders draft_polli_ratelimit_headers disableHeader setHeaders addHeaders addHeadersOnExceeding enableDraftSpec",
  ],
  ["body", "message errorMessage errorResponseBuilder"],
  ["onLimited", "statusCode status handler throw"],
  ["refundWhen", "skipSuccessfulRequests skipFailedRequests requestWasSuccessful"],
  ["decisionName", "requestPropertyName"],
  ["clientIp", "trustProxy trustedHops trustedProxies"],
  ["ipv6Prefix", "ipv6Subnet"],
  ["rules", "throttlers dynamicLimits match"],
  ["timeoutMs", "timeout"],
  ["onStoreError", "passOnStoreError skipOnError insuranceLimiter"],
  ["onEvent", "onLimitReached logger analytics onExceeding onExceeded onBanReach"],
];

/** What stands for options that ours have no word for. */
const sentences: Given & Readonly<Record<string, string>> = {
  algorithm:
    'Write policy: tokenBucket({ capacity: 20, refill: 10, every: "1s" }), fixedWindow({ limit: 100, window: "1m" }) or another: the functions have the names of the algorithms',
  requeststorepropertyname: "Leave it out: the middleware has a `limiter`, with peek and reset",
  validate: "Leave it out: options are always checked, and they cost no request anything",
  blacklist: 'Reject such clients in a middleware before the limit, or call limiter.block(key, "1d")',
  continueexceeding: 'Write policy: slidingWindowLog({ limit: 100, window: "1m", countRejected: true })',
  execevenly: `Write ${leaky}`,
  execevenlymindelayms: `Write ${leaky}`,
  delayafter: `Write ${leaky}`,
  delayms: `Write ${leaky}`,
  ephemeralcache: denyCache,
  inmemoryblockonconsumed: denyCache,
  inmemoryblockduration: denyCache,
  maxkeys: "That is an option of a store: memoryStore({ maxKeys: 100_000 })",
};

/** Options of one algorithm, with the policy to write where a policy can be given. */
const ofPolicies: Given & Readonly<Record<string, string>> = {
  refill: bucket,
  style: bucket,
  leak: leaky,
  maxdelayms: leaky,
  burst: 'policy: gcra({ limit: 100, window: "1m", burst: 20 })',
  buckets: 'policy: slidingWindowCounter({ limit: 100, window: "1m", buckets: 60 })',
  strict: 'policy: slidingWindowCounter({ limit: 100, window: "1m", buckets: 60, strict: true })',
  countrejected: 'policy: slidingWindowLog({ limit: 100, window: "1m", countRejected: true })',
  per: calendar,
  timezone: calendar,
  startson: 'policy: calendarWindow({ limit: 100, per: "month", startsOn: 15 })',
};

/** Options that neither rules nor the parts of options have. */
const ofRateLimit: ReadonlySet<string> = new Set(
  "store skip headers body onLimited refundWhen decisionName clientIp ipv6Prefix keys costs plan rules timeoutMs onStoreError keySecret receiptSecret onEvent".split(
    " ",
  ),
);
/** Options of rateLimit and of rules, that a limiter lacks. */
const ofRules: ReadonlySet<string> = new Set(["key", "cost", "ban", "exempt"]);

const byWord: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ...Object.keys(examples).map((word) => [word.toLowerCase(), [word]] as const),
  ...foreign.flatMap(([ours, theirs]) => theirs.split(" ").map((word) => [word.toLowerCase(), ours.split(" ")] as const)),
]);

/**
 * Advice for an option of another library, or for one of ours in another place, as a sentence; undefined for any other word.
 * @param known the valid options in this place.
 */
export function foreignAdvice(word: string, given: Given, known: readonly string[]): string | undefined {
  const lower = word.toLowerCase();
  if (Object.hasOwn(sentences, lower)) return `${sentences[lower]}.`;
  if (known.includes("policy") && Object.hasOwn(ofPolicies, lower)) return `That is an option of a policy. Write ${ofPolicies[lower]}.`;
  const answers = byWord.get(lower);
  if (answers === undefined) return undefined;
  const here = answers.find((ours) => known.includes(ours));
  if (here !== undefined) return `Write ${written(here, given[word], unitMsOf(word, given))}.`;
  const ours = answers.at(-1) as string;
  if (ofRateLimit.has(ours)) return `That is an option of rateLimit, not of a rule or a limiter: ${written(ours, given[word], 1)}.`;
  const isLimiter = known.includes("store");
  return isLimiter && ofRules.has(ours) ? `That is an option of rateLimit and of its rules: ${written(ours, given[word], 1)}.` : undefined;
}

/** These are seconds in rate-limiter-flexible, which has `points`, and in old versions of @nestjs/throttler. Elsewhere they are milliseconds. */
function unitMsOf(word: string, given: Given): number {
  const value = given[word];
  if (!["duration", "blockduration", "ttl"].includes(word.toLowerCase()) || typeof value !== "number") return 1;
  return "points" in given || value % 1000 !== 0 ? 1000 : 1;
}

/** One of our options with the given value, if that has the kind of the example's. */
function written(ours: string, value: unknown, unitMs: number): string {
  const example = examples[ours] as string;
  const [, usual = ""] = /^\w+: ("\d+\w+"|\d+|"[\w ]+")$/.exec(example) ?? [];
  if (/^\d/.test(usual)) return Number.isSafeInteger(value) ? `${ours}: ${value}` : example;
  if (/^"\d/.test(usual)) return `${ours}: ${duration(value, unitMs, usual)}`;
  return usual !== "" && typeof value === "string" && value.length <= 60 ? `${ours}: ${shown(value)}` : example;
}

/** The line that imports a function: advice for errors. */
export function importOf(name: string, module: string): string {
  return `import { ${name} } from ${shown(module)}`;
}

const unitsMs: readonly (readonly [unit: string, ms: number, written: RegExp])[] = [
  ["d", 86_400_000, /^d(ays?)?$/],
  ["h", 3_600_000, /^h(rs?|ours?)?$/],
  ["m", 60_000, /^m(ins?|inutes?)?$/],
  ["s", 1000, /^s(ecs?|econds?)?$/],
  ["ms", 1, /^(ms|milliseconds?)?$/],
  ["w", 604_800_000, /^w(eeks?)?$/],
];

/** A number of these units, or a text such as `"1 hour"` or `"2w"`, as one of our durations; `usual` if it cannot be read. */
export function duration(value: unknown, unitMs: number, usual: string): string {
  const [, count, unit = ""] = (typeof value === "string" && /^\s*(\d{1,12})\s*([a-z]{0,12})\s*$/i.exec(value)) || [];
  const read = unitsMs.find(([, , pattern]) => pattern.test(unit.toLowerCase()));
  const ms = typeof value === "number" ? value * unitMs : Number(count) * (read?.[1] ?? Number.NaN);
  if (!Number.isSafeInteger(ms) || ms < 1) return usual;
  const [name, length] = unitsMs.find(([, length]) => ms % length === 0) as (typeof unitsMs)[number];
  return `"${ms / length}${name}"`;
}
