import { z } from "zod";

/**
 * What a file may hold: shapes and types, and what editors show of them. What the words mean together is core's to judge;
 * `meta` tells editors of it as far as a schema can.
 */

/** How a value is asked for where it is another one. */
export interface Expected {
  readonly what: string;
  readonly example: string;
}

/** What schemas expect, for messages. */
export const expectations: z.core.$ZodRegistry<Expected> = z.registry<Expected>();

type Shape = Record<string, z.ZodType>;
type Meta = Readonly<Record<string, unknown>>;

function expect<S extends z.ZodType>(schema: S, what: string, example: string, meta: Meta = {}): S {
  const described = schema.meta(meta);
  expectations.add(described, { what, example });
  return described;
}

function text(example: string, description: string, meta: Meta = {}): z.ZodType {
  return expect(z.string(), "a text", example, { description, ...meta });
}

function flag(example: string, description: string): z.ZodType {
  return expect(z.boolean(), "true or false", example, { description });
}

function whole(example: string, description: string, minimum = 1): z.ZodType {
  return expect(z.number(), "a whole number", example, { description, type: "integer", minimum });
}

function duration(word: string, example: string, description: string): z.ZodType {
  const unit = z.string().meta({ pattern: "^0*[1-9][0-9]*(ms|s|m|h|d)$" });
  const ms = z.number().meta({ type: "integer", minimum: 1000, multipleOf: 1000 });
  const what = "a duration: a whole number with a unit (ms, s, m, h, d), or a number of milliseconds that is a multiple of 1000";
  return expect(z.union([unit, ms]), what, `${word}: ${example}`, { description, examples: [example] });
}

function listOf(item: z.ZodType, what: string, example: string, description: string): z.ZodType {
  return expect(z.array(item).min(1), what, example, { description });
}

function oneOrMore(item: z.ZodType, what: string, example: string, description: string): z.ZodType {
  return expect(z.union([item, expect(z.array(item).min(1), what, example)]), what, example, { description });
}

function map(shape: Shape, example: string, description: string, meta: Meta = {}): z.ZodObject {
  return expect(z.strictObject(shape), "a map", example, { description, ...meta });
}

const limit = whole("limit: 100", "The most units in a window; 0 rejects every request.", 0);
const window = duration("window", "1m", "How long a window is.");
const buckets = whole(
  "buckets: 6",
  "Sub-windows that the window is cut into, closer to the log the more there are; it must divide evenly. Default 1.",
);
const burst = whole("burst: 20", "How many may come at once. Default: the limit.");
const every = duration("every", "1s", "How long one refill or leak takes.");
const refill = whole("refill: 10", "Tokens that come in every `every`.");
const leak = whole("leak: 5", "Requests that leave the queue every `every`.");
const maxDelayMs = whole("maxDelayMs: 5000", "A request that would wait longer, in milliseconds, is rejected.", 0);
const capacity = whole("capacity: 20", "How many tokens the bucket holds, or requests the queue; 0 rejects every request.", 0);
const style = text("style: interval", "Whether tokens come in evenly, or all at once at the end of each `every`. Default smooth.", {
  enum: ["smooth", "interval"],
});
const countRejected = flag("countRejected: true", "Whether rejected requests count too. Default false.");

const algorithms = {
  "fixed-window": {
    of: { limit, window },
    description: "A count that starts anew at every whole multiple of the window. The cheapest.",
  },
  "sliding-window-log": {
    of: { limit, window, countRejected: countRejected.optional() },
    description: "The times of the units taken: exact in any window, at the price of memory.",
  },
  "sliding-window-counter": {
    of: { limit, window, buckets: buckets.optional() },
    description: "Counts of sub-windows, the oldest weighed by what is left of it: close to the log, and small.",
  },
  "token-bucket": {
    of: { capacity, refill, every, style: style.optional() },
    description: "Tokens that come in at a pace, up to a capacity that may be spent at once.",
  },
  "leaky-bucket": {
    of: { capacity, leak, every, maxDelayMs: maxDelayMs.optional() },
    description: "A queue drained at an even pace: it delays, then rejects.",
  },
  gcra: { of: { limit, window, burst: burst.optional() }, description: "An even pace with room for a burst." },
} as const satisfies Record<string, { of: Shape; description: string }>;

const example = "{ algorithm: fixed-window, limit: 100, window: 1m }";

const policies = Object.entries(algorithms).map(([algorithm, { of, description }]) => {
  const named = { algorithm: z.literal(algorithm).meta({ description }), ...of };
  return map(named, `policy: ${example}`, description);
});

function algorithmOf(options: readonly z.ZodObject[], word: string, description: string): z.ZodType {
  const choice = z.discriminatedUnion("algorithm", options as [z.ZodObject, ...z.ZodObject[]]);
  return expect(choice, "a map", `${word}: ${example}`, { description });
}

/** Some of the numbers of the rule's own policy. */
const numbers = map(
  {
    algorithm: z.undefined().optional(),
    ...Object.fromEntries(
      Object.entries({ limit, window, buckets, burst, capacity, refill, leak, every, maxDelayMs }).map(([word, schema]) => [
        word,
        schema.optional(),
      ]),
    ),
  },
  "pro: { limit: 1000 }",
  "Other numbers for the rule's own policy.",
);

const plan = algorithmOf([...policies, numbers], "pro", "Some of the policy's numbers, or a policy of the plan's own.");

const exempt = map(
  {
    ips: listOf(
      text("ips: [10.0.0.0/8]", "An address or a range."),
      "a list",
      "ips: [10.0.0.0/8]",
      "Client addresses and ranges.",
    ).optional(),
    keys: listOf(
      expect(
        z.union([z.string(), z.number(), z.boolean(), z.array(z.union([z.string(), z.number(), z.boolean()]))]),
        "a key",
        "keys: [internal]",
      ),
      "a list",
      "keys: [internal]",
      "Keys, as the rule's own `key` makes them, a list for a tuple; of a secret the key or its digest, secret:<digits>.",
    ).optional(),
  },
  "exempt: { ips: [10.0.0.0/8] }",
  "Whom this does not count.",
);

const header = z.record(
  z.string(),
  expect(
    z.union([z.string(), z.boolean(), expect(z.array(z.string()).min(1), "a list", 'x-api-version: ["2", "3"]')]),
    "a text, a list of them, true or false",
    'x-api-version: "2"',
    {
      description:
        "The value, with * for any run of characters; several, of which one must fit; true where any will do, false where the header must be missing.",
    },
  ),
);

const match = map(
  {
    method: oneOrMore(
      text("method: POST", "An HTTP method. GET covers HEAD."),
      "a text or a list of them",
      "method: POST",
      "One HTTP method or several. GET covers HEAD.",
    ).optional(),
    path: oneOrMore(
      text("path: /posts/:id", "A full path, with :name for one segment and * for any number of them.", {
        pattern: "^/[^?#+(){}\\[\\]\\\\]*$",
      }),
      "a text or a list of them",
      "path: /posts/:id",
      "One full path or several, with :name for one segment and * for any number of them.",
    ).optional(),
    header: expect(header, "a map", 'header: { x-api-version: "2" }', { description: "Headers and their values." }).optional(),
  },
  "match: { method: POST, path: /posts }",
  "Which requests the rule is for: all parts must fit. Default: every request.",
);

const cost = expect(
  z.union([z.number().meta({ type: "integer", minimum: 1 }), z.string().meta({ minLength: 1 })]),
  "a whole number or a name",
  "cost: 5",
  { description: "The units that a request takes: a whole number, or the name of one of the app's `costs`. Default 1." },
);

const ban = map(
  {
    after: whole("after: 10", "How many rejections."),
    within: duration("within", "1m", "Within what time."),
    for: duration("for", "1h", "For how long the key is turned away then."),
  },
  "ban: { after: 10, within: 1m, for: 1h }",
  "Turns away for a while a key that is rejected again and again.",
);

const rule = map(
  {
    name: text("name: posts", "The rule's own name: in headers, in events and, with the key, of the count in the store.", {
      pattern: "^[ -~]{1,128}$",
    }),
    match: match.optional(),
    key: oneOrMore(
      text(
        "key: user",
        "ip, route, global, header:<name>, or one of the app's `keys`; secret:<name> stores and shows only a digest of it.",
        {
          minLength: 1,
          examples: ["ip", "global", "route", "header:x-api-key", "secret:header:x-token"],
        },
      ),
      "a name or a list of names",
      "key: user",
      "Whom to count: a name, or a list of names that count together. Default ip.",
    ).optional(),
    onMissingKey: text(
      "onMissingKey: skip",
      "What happens to a request without a key: an error, no limit, a rejection, or it counts by its address. Default error.",
      {
        enum: ["error", "skip", "reject", "ip"],
      },
    ).optional(),
    limit: limit.meta({ description: "With `window`, short for a sliding-window-counter." }).optional(),
    window: window.optional(),
    policy: algorithmOf(policies, "policy", "How the limit counts: an algorithm with its numbers.").optional(),
    plans: expect(z.record(z.string(), plan), "a map", "plans: { pro: { limit: 1000 } }", {
      description: "Other numbers for the plans that the app's `plan` tells; any other plan has the policy's own.",
      minProperties: 1,
    }).optional(),
    cost: cost.optional(),
    settle: text(
      "settle: tokens",
      "The name of one of the app's `costs`: what the request has really taken, known once its response is done.",
      { minLength: 1 },
    ).optional(),
    mode: text("mode: shadow", "shadow counts and tells, but rejects nothing. Default enforce.", {
      enum: ["enforce", "shadow"],
    }).optional(),
    exempt: exempt.optional(),
    ban: ban.optional(),
  },
  "- { name: per-ip, key: ip, limit: 100, window: 1m }",
  "One limit: a name, what it matches, whom it counts and how.",
  {
    oneOf: [
      { required: ["limit", "window"], properties: { limit: true, window: true, policy: false } },
      { required: ["policy"], properties: { policy: true, limit: false, window: false } },
    ],
  },
);

/** A whole file. */
export const rulesFile: z.ZodType = map(
  {
    $schema: text("$schema: ./schema.json", "Where a JSON file names its schema.").optional(),
    exempt: exempt.meta({ description: "Whom no rule counts." }).optional(),
    rules: listOf(
      rule,
      "a list of rules",
      "rules: [{ name: per-ip, key: ip, limit: 100, window: 1m }]",
      "The rules. All that match a request are checked in one step.",
    ),
  },
  "rules: [{ name: per-ip, key: ip, limit: 100, window: 1m }]",
  "The rules of Floodgate: limits, whom they count and what they are for.",
);
