import { durationCode } from "./duration.js";
import { shown } from "./errors.js";

type Given = Readonly<Record<string, unknown>>;

/** Values of our options, as code to write. From `store` on, only rateLimit has them. */
const examples: Given & Readonly<Record<string, string>> = {
  header: '{ "x-api-version": "2" }',
  trustedHops: "1",
  limit: "100",
  window: '"15m"',
  capacity: "20",
  refill: "10",
  leak: "5",
  every: '"1s"',
  after: "10",
  within: '"1m"',
  for: '"1h"',
  maxKeys: "100000",
  prefix: '"floodgate"',
  policy: 'slidingWindowCounter({ limit: 100, window: "1m" })',
  key: '(req) => req.user.id, or "ip"; a limiter takes it in consume(key)',
  cost: "1",
  ban: '{ after: 10, within: "1m", for: "1h" }, or limiter.block(key, "1h")',
  exempt: '{ ips: ["10.0.0.0/8"] }, or `skip`',
  name: '"api"',
  match: '{ method: "POST", path: "/posts" }',
  mode: '"shadow"',
  store: "redisStore(redis) of @floodgate/store-redis, or memoryStore()",
  skip: '(req) => req.path === "/health"',
  headers: '"standard", "draft-7", "draft-6", "legacy", ["standard", "legacy"] or false',
  body: '"Too many requests"',
  onLimited: '(req, res) => res.status(429).send("Slow down"), in Koa and Hono (c) => ...',
  refundWhen: "(status) => status < 400 for successes, or status >= 400 for failures",
  decisionName: '"rateLimit"',
  clientIp: '{ trustedHops: 1 }, or { trustedProxies: ["10.0.0.0/8"] }',
  ipv6Prefix: "56",
  keys: "{ user: (req) => req.user?.id }",
  costs: "{ items: (req) => req.body.items.length }",
  plan: "(req) => req.user?.plan",
  rules: '[{ name, match, limit, window }], or a source: fileRules("limits.yaml")',
  timeoutMs: "100",
  onStoreError: '"allow", "deny", or memoryStore()',
  keySecret: "process.env.KEY_SECRET",
  receiptSecret: "process.env.RECEIPT_SECRET",
  onEvent: "(event) => console.log(event)",
};

type Row = readonly [of: string, words: string];

/** Options of other libraries and of frameworks, by ours that stand for them: the first that the place has. */
const foreign: readonly Row[] = [
  ["limit capacity after cost policy", "points limit capacity bucketSize maxTokens"],
  ["maxKeys limit capacity after policy", "max"],
  ["refill limit", "tokensPerInterval refillRate"],
  ["refill leak", "refill leak"],
  ["capacity", "burst"],
  ["window every within for policy", "windowMs timeWindow interval window every per"],
  ["for window every within policy", "duration"],
  ["ban", "after within"],
  ["window every policy", "ttl"],
  ["policy", "limiter"],
  ["for ban", "for blockDuration exponentialBackoff"],
  ["prefix name", "keyPrefix prefix namespace identifier groupId"],
  ["key", "keyGenerator id getTracker generateKey"],
  ["refill leak limit cost policy", "rate"],
  ["exempt", "whiteList allowList"],
  ["skip", "skipIf ignoreUserAgents"],
  ["store", "redis storeClient db driver client binding storage cache"],
  ["headers", "standardHeaders legacyHeaders disableHeader setHeaders addHeaders addHeadersOnExceeding enableDraftSpec"],
  ["body", "message errorMessage errorResponseBuilder"],
  ["onLimited", "statusCode status handler throw"],
  ["refundWhen", "skipSuccessfulRequests skipFailedRequests requestWasSuccessful"],
  ["decisionName", "requestPropertyName"],
  ["header headers", "headers"],
  ["trustedHops clientIp", "trustProxy"],
  ["clientIp", "trustedHops trustedProxies"],
  ["mode", "dryRun shadow"],
  ["ipv6Prefix", "ipv6Subnet"],
  ["rules", "throttlers dynamicLimits match"],
  ["match rules", "path method"],
  ["timeoutMs", "timeout"],
  ["onStoreError", "passOnStoreError skipOnError insuranceLimiter"],
  ["onEvent", "onLimitReached logger analytics onExceeding onExceeded onBanReach"],
];

/** For options of algorithms, in places where a policy can be given. */
const ofPolicy = 'Write policy: tokenBucket({ capacity: 20, refill: 10, every: "1s" }), or the function of another algorithm';
const ofCalendar = 'Write policy: calendarWindow({ limit: 1000, per: "month" })';

/** What stands for options that ours have no word for. */
const sentences: readonly Row[] = [
  [ofPolicy, "algorithm refill style leak maxDelayMs burst buckets strict countRejected"],
  [ofCalendar, "per timeZone startsOn"],
  ["Leave it out: the middleware has a `limiter`, with peek and reset", "requestStorePropertyName"],
  ["Leave it out: options are always checked", "validate"],
  ['Reject such clients before the limit, or call limiter.block(key, "1d")', "blackList"],
  ['Write policy: slidingWindowLog({ limit: 100, window: "1m", countRejected: true })', "continueExceeding"],
  ['Write policy: leakyBucket({ capacity: 10, leak: 5, every: "1s" })', "execEvenly execEvenlyMinDelayMs delayAfter delayMs"],
  ["Leave it out: redisStore has such a cache", "ephemeralCache inMemoryBlockOnConsumed inMemoryBlockDuration"],
  ["Write store: memoryStore({ maxKeys: 100_000 })", "maxKeys"],
];

const byWord = (rows: readonly Row[]): ReadonlyMap<string, string> =>
  new Map(rows.flatMap(([of, words]) => words.split(" ").map((word) => [word.toLowerCase(), of] as const)));
const oursByWord = byWord([...Object.keys(examples).map((word) => [word, word] as const), ...foreign]);
const sentenceByWord = byWord(sentences);

/**
 * Advice for an option of another library, or for one of ours in another place, as a sentence; undefined for any other word.
 * @param known the valid options in this place.
 */
export function foreignAdvice(word: string, given: Given, known: readonly string[]): string | undefined {
  const lower = word.toLowerCase();
  const sentence = sentenceByWord.get(lower);
  if (sentence !== undefined && ((sentence !== ofPolicy && sentence !== ofCalendar) || known.includes("policy"))) return `${sentence}.`;
  const answers = oursByWord.get(lower)?.split(" ") ?? [];
  const here = answers.find((ours) => known.includes(ours));
  if (here !== undefined) return `Write ${optionCode(here, given[word], unitMsOf(word, given))}.`;
  const ours = answers.at(-1) ?? "";
  const all = Object.keys(examples);
  const isElsewhere = all.indexOf(ours) >= all.indexOf(known.includes("store") ? "limit" : "store");
  return isElsewhere ? `That is an option of rateLimit: ${optionCode(ours, given[word], 1)}.` : undefined;
}

/** These are seconds in rate-limiter-flexible, which has `points`, and in old versions of @nestjs/throttler. Elsewhere they are milliseconds. */
function unitMsOf(word: string, given: Given): number {
  const value = given[word];
  if (!["duration", "blockduration", "ttl"].includes(word.toLowerCase()) || typeof value !== "number") return 1;
  return "points" in given || value % 1000 !== 0 ? 1000 : 1;
}

/** One of our options with the given value, if that has the kind of the example's. */
function optionCode(ours: string, value: unknown, unitMs: number): string {
  const example = examples[ours] as string;
  let text = example;
  if (/^\d+$/.test(example)) text = Number.isSafeInteger(value) ? `${value}` : example;
  else if (/^"\d+\w+"$/.test(example)) text = durationCode(value, unitMs, example);
  else if (/^"[\w ]+"$/.test(example) && typeof value === "string" && value.length <= 60) text = shown(value);
  return `${ours}: ${text}`;
}

/** The line that imports a function: advice for errors. */
export function importOf(name: string, module: string): string {
  return `import { ${name} } from ${shown(module)}`;
}
