import { shown } from "./errors.js";

/** All given options, for advice that depends on several of them. */
type Given = Readonly<Record<string, unknown>>;

/**
 * Advice for places where `ours` is an option: a string, or a function of the given value. Text that begins with an option's name and
 * a colon is code to write; other text begins a sentence.
 */
type Answer = readonly [ours: string, advice: string | ((value: unknown, given: Given) => string)];

/**
 * Advice for an option of another library, as a sentence; undefined if no other library has such an option.
 * @param known the valid options in this place.
 */
export function foreignAdvice(word: string, given: Given, known: readonly string[]): string | undefined {
  const answers = table.get(word.toLowerCase());
  if (answers === undefined) return undefined;
  const here = answers.find(([ours]) => known.includes(ours));
  const [, advice] = here ?? (answers[0] as Answer);
  const text = typeof advice === "string" ? advice : advice(given[word], given);
  if (!/^\w+: /.test(text)) return `${text}.`;
  return here === undefined ? `That is an option of rateLimit: ${text}.` : `Write ${text}.`;
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
];

function durationText(ms: number): string {
  const [unit, unitMs] = unitsMs.find(([, unitMs]) => ms % unitMs === 0) as (typeof unitsMs)[number];
  return `"${ms / unitMs}${unit}"`;
}

/** Converts a number of these units, or a string in the format of the `ms` package, to milliseconds. */
function msOf(value: unknown, unitMs: number): number | undefined {
  let ms = typeof value === "number" ? value * unitMs : Number.NaN;
  const [, count, unit = ""] = (typeof value === "string" && /^\s*(\d{1,12})\s*([a-z]{0,12})\s*$/i.exec(value)) || [];
  const written = unitsMs.find(([, , pattern]) => pattern.test(unit.toLowerCase()));
  if (count !== undefined && written !== undefined) ms = Number(count) * written[1];
  return Number.isSafeInteger(ms) && ms >= 1 ? ms : undefined;
}

/** The value as one of our durations, or `usual` if it cannot be read. */
export function duration(value: unknown, unitMs: number, usual: string): string {
  const ms = msOf(value, unitMs);
  return ms === undefined ? usual : durationText(ms);
}

/** `duration` is in seconds in rate-limiter-flexible (where `points` is beside it), and in milliseconds in koa-ratelimit. */
function unitOfDuration(value: unknown, given: Given): number {
  return "points" in given || typeof value !== "number" || value % 1000 !== 0 ? 1000 : 1;
}

/** `ttl` is in milliseconds in @nestjs/throttler; older versions used seconds. */
function unitOfTtl(value: unknown): number {
  return typeof value === "number" && value % 1000 !== 0 ? 1000 : 1;
}

function windowText(given: Given): string {
  const { window, windowMs, timeWindow, interval, ttl, duration: length } = given;
  const ms =
    msOf(window ?? windowMs ?? timeWindow ?? interval, 1) ?? msOf(ttl, unitOfTtl(ttl)) ?? msOf(length, unitOfDuration(length, given));
  return ms === undefined ? `"15m"` : durationText(ms);
}

function count(value: unknown, usual: number): string {
  return `${typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : usual}`;
}

function limitAndWindow(given: Given, usual = 100): string {
  const { limit, max, points } = given;
  return `limit: ${count(limit ?? max ?? points, usual)}, window: ${windowText(given)}`;
}

const counted = (_: unknown, given: Given): string => `policy: slidingWindowCounter({ ${limitAndWindow(given)} })`;

/** The value as code, if that is short and works in every framework; else an example. */
function text(value: unknown, usual: string): string {
  return typeof value === "string" && value.length <= 60 ? shown(value) : usual;
}

const addresses = (value: unknown): string => {
  if (typeof value === "function") return "skip: (request) => ..., with the same function";
  const some = Array.isArray(value) && value.length > 0 && value.length <= 4 && value.every((one) => typeof one === "string");
  return `exempt: { ips: ${some ? `[${value.map((one) => text(one, '"10.0.0.0/8"')).join(", ")}]` : '["10.0.0.0/8"]'} }`;
};

/** Combines `standardHeaders` and `legacyHeaders` of express-rate-limit. */
function headers(_: unknown, { standardHeaders, legacyHeaders }: Given): string {
  const draft = standardHeaders === "draft-6" || standardHeaders === "draft-7" ? `"${standardHeaders}"` : `"standard"`;
  const isStandard = standardHeaders !== undefined && standardHeaders !== false;
  if (legacyHeaders === true) return isStandard ? `headers: [${draft}, "legacy"]` : `headers: "legacy"`;
  if (legacyHeaders === false && standardHeaders === false) return "headers: false";
  return draft === `"standard"` ? `headers: "standard", which is the default` : `headers: ${draft}`;
}

const ban = (unitMs: number) => (value: unknown, given: Given) =>
  `ban: { after: 1, within: ${windowText(given)}, for: ${duration(value, "ttl" in given ? 1 : unitMs, `"1h"`)} }`;

const redis = (value: unknown): string =>
  value === "memory" || value instanceof Map
    ? "store: memoryStore(), which is the default"
    : `store: redisStore(redis), with ${importOf("redisStore", "@floodgate/store-redis")}`;

const body = (value: unknown): string => `body: ${text(value, `{ error: "Too many requests" }`)}`;
const answer = 'onLimited: (req, res, decision) => res.send("Slow down"), which in Koa and Hono takes (context, decision)';
const event = 'onEvent: (event) => { if (event.type === "limited") console.log(event.name, event.key); }';
const gaveBack = "refundWhen: (status) => status ";
const keyOf = "key: (req) => req.user.id, a function of the request, or a name such as";

/** The policy that an algorithm's name stands for, however it is written. */
function policyOf(algorithm: unknown, given: Given): string {
  const word = typeof algorithm === "string" ? algorithm.toLowerCase() : "";
  if (word.includes("token")) return 'policy: tokenBucket({ capacity: 20, refill: 10, every: "1s" })';
  if (word.includes("leaky")) return leaky;
  if (word.includes("fixed")) return `policy: fixedWindow({ ${limitAndWindow(given)} })`;
  if (word.includes("log")) return `policy: slidingWindowLog({ ${limitAndWindow(given)} })`;
  if (word.includes("gcra")) return `policy: gcra({ ${limitAndWindow(given)} })`;
  return counted(algorithm, given);
}

const leaky = 'policy: leakyBucket({ capacity: 10, leak: 5, every: "1s" })';
const limit: readonly Answer[] = [
  [
    "limit",
    (value, given) =>
      typeof value === "function"
        ? `policy: (request) => slidingWindowCounter({ limit: ..., window: ${windowText(given)} })`
        : `limit: ${count(value, 100)}`,
  ],
  ["capacity", (value) => `capacity: ${count(value, 20)}`],
  ["after", (value) => `after: ${count(value, 10)}`],
  ["cost", (value) => `cost: ${count(value, 1)}`],
  ["policy", counted],
];
const window = (unitOf: (value: unknown, given: Given) => number): readonly Answer[] => [
  ["window", (value, given) => `window: ${duration(value, unitOf(value, given), `"15m"`)}`],
  ["every", (value, given) => `every: ${duration(value, unitOf(value, given), `"1s"`)}`],
  ["within", (value, given) => `within: ${duration(value, unitOf(value, given), `"1m"`)}`],
  ["policy", counted],
];
const milliseconds = window(() => 1);
const key: readonly Answer[] = [
  ["key", `${keyOf} "ip"`],
  ["policy", "Give the key to each call: limiter.consume(key)"],
];
const name: readonly Answer[] = [
  ["prefix", (value) => `prefix: ${text(value, `"floodgate"`)}`],
  ["name", (value) => `name: ${text(value, `"api"`)}`],
];
const store: readonly Answer[] = [["store", redis]];
const listener: readonly Answer[] = [["onEvent", event]];
const message: readonly Answer[] = [
  ["body", body],
  ["onLimited", answer],
];
const handler: readonly Answer[] = [["onLimited", answer]];
const exempt: readonly Answer[] = [["exempt", addresses]];
const proxy: readonly Answer[] = [
  [
    "clientIp",
    (value) => (Array.isArray(value) ? 'clientIp: { trustedProxies: ["10.0.0.0/8"] }' : `clientIp: { trustedHops: ${count(value, 1)} }`),
  ],
];
const headerSwitch =
  (off: unknown): Answer[1] =>
  (value) =>
    value === off ? "headers: false" : `headers: "standard", which is the default`;
const deny: readonly Answer[] = [
  ["denyCache", "denyCache: true, which is the default"],
  ["store", "Leave it out: redisStore has such a cache, which is on unless you write denyCache: false"],
];
const queue: readonly Answer[] = [["policy", leaky]];
const passOnError: readonly Answer[] = [
  ["onStoreError", (value) => `onStoreError: ${value === false ? `"deny"` : `"allow", which is the default`}`],
];

/** The options of other libraries, by lower-case name. */
const table: ReadonlyMap<string, readonly Answer[]> = new Map(
  Object.entries<readonly Answer[]>({
    // express-rate-limit, hono-rate-limiter
    windowMs: milliseconds,
    max: [["maxKeys", (value) => `maxKeys: ${count(value, 100_000)}`], ...limit],
    message,
    statusCode: handler,
    handler,
    onLimitReached: listener,
    standardHeaders: [["headers", headers]],
    legacyHeaders: [["headers", headers]],
    draft_polli_ratelimit_headers: [["headers", headerSwitch(false)]],
    identifier: name,
    requestPropertyName: [["decisionName", (value) => `decisionName: ${text(value, `"rateLimit"`)}`]],
    requestStorePropertyName: [["store", "Leave it out: the middleware has a `limiter`, with peek and reset"]],
    keyGenerator: key,
    ipv6Subnet: [["ipv6Prefix", (value) => `ipv6Prefix: ${count(value, 56)}`]],
    skipSuccessfulRequests: [["refundWhen", `${gaveBack}< 400`]],
    skipFailedRequests: [["refundWhen", `${gaveBack}>= 400`]],
    requestWasSuccessful: [["refundWhen", `${gaveBack}< 400`]],
    passOnStoreError: passOnError,
    validate: [["headers", "Leave it out: options are always checked, and they cost no request anything"]],
    logger: listener,
    binding: store,
    // rate-limiter-flexible
    points: limit,
    duration: [["for", (value) => `for: ${duration(value, 1000, `"1h"`)}`], ...window(unitOfDuration)],
    keyPrefix: name,
    blockDuration: [
      ["for", (value) => `for: ${duration(value, 1000, `"1h"`)}`],
      ["ban", ban(1000)],
      ["policy", (value) => `Block the key when it is rejected: limiter.block(key, ${duration(value, 1000, `"1h"`)})`],
    ],
    execEvenly: queue,
    execEvenlyMinDelayMs: queue,
    storeClient: store,
    insuranceLimiter: [["onStoreError", "onStoreError: memoryStore()"]],
    inMemoryBlockOnConsumed: deny,
    inMemoryBlockDuration: deny,
    whiteList: exempt,
    blackList: [["ban", `Reject such clients in a middleware before the limit, or call limiter.block(key, "1d")`]],
    // @upstash/ratelimit
    redis: store,
    limiter: [["policy", 'policy: slidingWindowCounter({ limit: 10, window: "10s" })']],
    prefix: name,
    timeout: [["timeoutMs", (value) => `timeoutMs: ${count(value, 100)}`]],
    ephemeralCache: deny,
    analytics: listener,
    dynamicLimits: [["rules", `rules: await redisRules(redis, "floodgate:rules"), with ${importOf("redisRules", "@floodgate/rules")}`]],
    rate: [["cost", (value) => `cost: ${count(value, 1)}`]],
    // koa-ratelimit
    db: store,
    driver: store,
    client: store,
    id: key,
    namespace: name,
    errorMessage: message,
    disableHeader: [["headers", headerSwitch(true)]],
    throw: [["onLimited", 'onLimited: () => { throw new Error("Too many requests"); }']],
    status: handler,
    // @fastify/rate-limit
    timeWindow: milliseconds,
    cache: [["store", (value) => `store: memoryStore({ maxKeys: ${count(value, 100_000)} })`]],
    allowList: exempt,
    continueExceeding: [["policy", (_, given) => `policy: slidingWindowLog({ ${limitAndWindow(given)}, countRejected: true })`]],
    skipOnError: passOnError,
    exponentialBackoff: [["ban", ban(1000)]],
    groupId: name,
    errorResponseBuilder: message,
    onExceeding: listener,
    onExceeded: listener,
    onBanReach: [["onEvent", event.replace("limited", "banned")]],
    addHeaders: [["headers", headers]],
    addHeadersOnExceeding: [["headers", headers]],
    enableDraftSpec: [["headers", headers]],
    // @nestjs/throttler
    ttl: [["maxKeys", "Leave it out: a key expires when its limit has forgotten it"], ...window(unitOfTtl)],
    throttlers: [["rules", 'rules: [{ name: "short", limit: 3, window: "1s" }]']],
    storage: store,
    getTracker: key,
    generateKey: key,
    ignoreUserAgents: [["skip", 'skip: (req) => /bot/.test(req.headers["user-agent"])']],
    skipIf: [["skip", 'skip: (req) => req.path === "/health"']],
    setHeaders: [["headers", headerSwitch(false)]],
    // express-slow-down, limiter
    delayAfter: queue,
    delayMs: queue,
    interval: milliseconds,
    tokensPerInterval: [["refill", (value) => `refill: ${count(value, 10)}`], ...limit],
    bucketSize: limit,
    // Settings of frameworks.
    trustProxy: proxy,
    trustedHops: proxy,
    trustedProxies: proxy,
    // Words of rules files.
    algorithm: [["policy", policyOf]],
    // Options of rateLimit that were given to a rule.
    body: message,
    onLimited: handler,
    // Options of Floodgate's other policies: a bucket has no window, a window has no capacity.
    limit,
    capacity: limit,
    window: milliseconds,
    every: milliseconds,
    refillRate: [["refill", (value) => `refill: ${count(value, 10)}`], ...limit],
    maxTokens: limit,
  }).map(([word, answers]) => [word.toLowerCase(), answers]),
);
