import type { Key, LimiterKey, StateView } from "@floodgate/core";
import { wholeOf } from "@floodgate/core/rules";
import { z } from "zod";

// The JSON that the API takes and answers. The `error` of a schema completes "must be ...". The `id` of a schema is its name in the OpenAPI
// document.

/** The longest text of a key. */
const maxKeyLength = 1024;

/** A text with a length in bounds, of characters that UTF-8 can write. */
function text(least: number, most: number, error: string, pattern = /^/): z.ZodString {
  const string = z.string({ error }).min(least, { error }).max(most, { error }).regex(pattern, { error });
  return string.refine((text) => !/\p{Surrogate}/u.test(text), { error });
}

function whole(least: number): z.ZodNumber {
  const error = ({ input }: { readonly input?: unknown }): string => wholeOf(least, input);
  return z.number({ error }).int({ error }).min(least, { error }).max(Number.MAX_SAFE_INTEGER, { error });
}

function object<Shape extends z.ZodRawShape>(shape: Shape, error = "an object"): z.ZodObject<Shape, z.core.$strict> {
  return z.strictObject(shape, { error });
}

const keyWords = `a text of 1 to ${maxKeyLength} characters, a whole number below 2^53 (write larger ones as texts), true or false, or a list of those`;

const keyPart = z.union([
  text(1, maxKeyLength, keyWords),
  z.number().refine((number) => Number.isSafeInteger(number), { error: keyWords }),
  z.boolean(),
]);
const keyList = z.array(z.union([keyPart, z.array(keyPart).min(1).max(8)]));

const key: z.ZodType<Key> = z
  .union([keyPart, keyList.min(1).max(8)], { error: keyWords })
  .refine((key) => JSON.stringify(key).length <= 2 * maxKeyLength, { error: keyWords })
  .meta({ id: "Key", description: "Whom the rule counts: a user, an API key, an address. A list, if the rule's key is a list." });

const namedKey: z.ZodType<LimiterKey> = z
  .union([key, z.strictObject({ missingKeyIp: text(1, 64, "an IP address") })], {
    error: `${keyWords}, or { "missingKeyIp": "203.0.113.9" }`,
  })
  .meta({ id: "NamedKey", description: "A key, or a client that had none and is counted by its address (`onMissingKey: ip`)." });

const rule = text(1, 128, "the name of a rule").meta({ description: "The name of a rule." });

/** A rule by its name, and what to count. */
const named = {
  rule,
  key,
  cost: whole(1).optional().meta({ description: "The units to take. Default 1." }),
  plan: text(1, 128, "the name of a plan").optional().meta({
    description: "The plan of the key. Without it, or if the rule has no such plan, the rule's own policy counts.",
  }),
};

const answerOptions = {
  status: z
    .literal(429, { error: "429" })
    .optional()
    .meta({ description: "Answer a rejection with this status and Retry-After. Default: 200 with `allowed: false`." }),
  receipt: z
    .boolean({ error: "true or false" })
    .optional()
    .meta({ description: "Whether the answer has a receipt, for /v1/settle, /v1/refund and /v1/renew. Default true." }),
};

const single = object({ ...named, ...answerOptions }).meta({ id: "SingleCheck", description: "One rule." });

const checkList = { error: "a list of 1 to 16 checks" };

const several = object({ checks: z.array(object(named), checkList).min(1, checkList).max(16, checkList), ...answerOptions }).meta({
  id: "SeveralChecks",
  description: "Several rules in one atomic step: all are charged, or none is.",
});

const token = /^[!#$%&'*+.^_`|~\w-]+$/;

const headers = z
  .record(text(1, 256, "the name of a header", token), text(0, 16_384, "a text"), { error: 'an object of texts: { "x-user": "ann" }' })
  .refine((headers) => new Set(Object.keys(headers).map((name) => name.toLowerCase())).size === Object.keys(headers).length, {
    error: "an object whose names differ in more than upper and lower case",
  });

const described = object(
  {
    method: text(1, 64, "an HTTP method, such as GET", token),
    path: text(1, 16_384, "a path as the client sent it, with its query, without spaces and control characters", /^[^\p{Cc}\s]+$/u),
    host: text(1, 256, "a host").optional(),
    headers: headers.optional(),
    ip: z.union([z.ipv4(), z.ipv6()], { error: "an IP address" }).optional(),
  },
  'an object: { "method": "GET", "path": "/" }',
);
export type RequestBody = z.infer<typeof described>;

const request = object({ request: described, ...answerOptions }).meta({
  id: "RequestCheck",
  description: "A request. The rules decide which of them count it, and by which keys.",
});

/** The body of `POST /v1/check`, in each of its forms. */
export const checkForms = { single, several, request };
export const checkBody = z.union([single, several, request]).meta({ id: "Check" });

const receipt = text(1, 120_000, "a receipt, as /v1/check has answered it", /^fb1\.[\w-]+$/);
const cost = whole(0).meta({ description: "What the request has really used." });
const duration = text(2, 20, 'a duration, such as "15m", "1h" or "1d"', /^\d{1,15}(?:ms|s|m|h|d)$/);

export const receiptBody = object({ receipt }).meta({ id: "Receipt" });
export const settleBody = object({ receipt, cost }).meta({ id: "Settlement" });
export const targetBody = object({ rule, key: namedKey }).meta({ id: "Target" });
export const blockBody = object({ rule, key: namedKey, for: duration.meta({ description: "How long the key is turned away." }) }).meta({
  id: "Block",
});

const ms = z.number().int().min(0);

/** What every decision says. */
const numbers = {
  allowed: z.boolean().meta({ description: "Whether this limit alone allows." }),
  limit: z.number().meta({ description: "The largest cost that could ever pass." }),
  remaining: z.number().meta({ description: "The largest cost that would pass now." }),
  retryAfterMs: ms.nullable().meta({ description: "How long to wait before the same cost passes again; null if no wait helps." }),
  resetAfterMs: ms.meta({ description: "After this time nothing of the usage counts." }),
};

const decision = z
  .strictObject({
    rule: z.string(),
    key: z.string().meta({ description: "The key as events show it: a secret as its digest." }),
    ...numbers,
    delayMs: ms.meta({ description: "How long to hold the request before it goes on (leaky-bucket)." }),
    cost: z.number(),
    shadow: z.boolean().meta({ description: "The rule counts and reports, and rejects nothing." }),
    degraded: z.boolean().meta({ description: "The store failed, so `onStoreError` has decided, and the numbers are unknown." }),
  })
  .meta({ id: "Decision" });

export const checkAnswer = z
  .strictObject({
    allowed: z.boolean(),
    retryAfterMs: numbers.retryAfterMs,
    delayMs: ms.meta({ description: "The longest delay of all limits. Hold the request that long." }),
    degraded: z.boolean(),
    decisions: z.array(decision).meta({ description: "One for each rule that counted the request. Exempt keys have none." }),
    receipt: z.string().nullable().meta({ description: "For /v1/settle, /v1/refund and /v1/renew. Null if nothing was charged." }),
  })
  .meta({ id: "CheckAnswer" });
export type CheckAnswer = z.infer<typeof checkAnswer>;

const units = z.number().int().meta({
  description: "Charged in addition; negative: given back. 0 if the receipt was used before or has expired.",
});

export const unitsAnswer = z.strictObject({ units: z.array(z.strictObject({ rule: z.string(), units })) }).meta({ id: "Units" });
export type UnitsAnswer = z.infer<typeof unitsAnswer>;

const isHeld = z.boolean().meta({ description: "Whether the slot is held: false if it was given back, or came back and is taken." });

export const renewalAnswer = z
  .strictObject({ allowed: isHeld, slots: z.array(z.strictObject({ rule: z.string(), allowed: isHeld })) })
  .meta({ id: "Renewal", description: "`allowed` is true if all slots are held. Stop the work if it is false." });
export type RenewalAnswer = z.infer<typeof renewalAnswer>;

const until = z.strictObject({ untilMs: z.number() }).nullable();
const shown = { windowMs: z.number(), limit: z.number() };
const window = z.strictObject({ startMs: z.number(), endMs: z.number(), count: z.number(), weight: z.number() });

const used = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("empty") }),
  z.strictObject({ kind: z.literal("bucket"), level: z.number(), capacity: z.number(), refillsAtMs: z.number().exactOptional() }),
  z.strictObject({ kind: z.literal("windows"), ...shown, windows: z.array(window) }),
  z.strictObject({
    kind: z.literal("log"),
    ...shown,
    units: z.array(z.strictObject({ atMs: z.number(), units: z.number() })),
    total: z.number(),
  }),
  z.strictObject({ kind: z.literal("queue"), length: z.number(), capacity: z.number(), drainedAtMs: z.number() }),
]);

const held = z.array(z.strictObject({ untilMs: z.number(), units: z.number() }));
const view: z.ZodType<StateView> = z.union([
  used,
  z.strictObject({ kind: z.literal("held"), limit: z.number(), held, total: z.number(), used }),
]);

export const statusAnswer = z
  .strictObject({
    rule: z.string(),
    key: z.string(),
    atMs: z.number().meta({ description: "The store's time, in milliseconds since the epoch." }),
    ...numbers,
    states: z
      .array(z.strictObject({ plan: z.string().nullable(), ...numbers, state: view }))
      .meta({ description: "The usage under the rule's own policy, then under each plan." }),
    block: until.meta({ description: "The block by hand." }),
    ban: until.meta({ description: "The ban after repeated rejections." }),
  })
  .meta({ id: "StatusAnswer" });
export type StatusAnswer = z.infer<typeof statusAnswer>;

export const problem = z
  .strictObject({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    detail: z.string(),
    code: z.string().meta({ description: "Stable, for programs." }),
    errors: z.array(z.strictObject({ at: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: "Problem" });
