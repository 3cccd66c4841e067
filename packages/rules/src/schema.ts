import { descriptions, type OptionDescription, statusList } from "@floodgate/core/rules";
import * as z from "zod/mini";

/**
 * The schema of a rules file: types, and the descriptions that editors show. Core checks what the options mean together. `meta` tells
 * editors as much of that as JSON Schema can express.
 */

/** What a schema expects, for error messages: "must be <what>. Write <example>." */
interface Expected {
  readonly what: string;
  readonly example: string;
}

export const expectations: z.core.$ZodRegistry<Expected> = z.registry<Expected>();

type Shape = Record<string, z.ZodMiniType>;
type Meta = Readonly<Record<string, unknown>>;

/** A copy of a schema with what editors show. */
function withMeta<S extends z.ZodMiniType>(schema: S, meta: Meta): S {
  const copy = schema.clone();
  z.globalRegistry.add(copy, meta);
  return copy;
}

function expect<S extends z.ZodMiniType>(schema: S, what: string, example: string, meta: Meta = {}): S {
  const described = withMeta(schema, meta);
  expectations.add(described, { what, example });
  return described;
}

function text(example: string, description: string, meta: Meta = {}): z.ZodMiniType {
  return expect(z.string(), "a string", example, { description, ...meta });
}

function flag(example: string, description: string): z.ZodMiniType {
  return expect(z.boolean(), "true or false", example, { description });
}

function whole(example: string, description: string, minimum = 1): z.ZodMiniType {
  return expect(z.number(), "a whole number", example, { description, type: "integer", minimum });
}

function duration(word: string, example: string, description: string): z.ZodMiniType {
  const unit = withMeta(z.string(), { pattern: "^0*[1-9][0-9]*(ms|s|m|h|d)$" });
  const ms = withMeta(z.number(), { type: "integer", minimum: 1000, multipleOf: 1000 });
  const what = "a duration: a whole number with a unit (ms, s, m, h, d), or a number of milliseconds that is a multiple of 1000";
  return expect(z.union([unit, ms]), what, `${word}: ${example}`, { description, examples: [example] });
}

function listOf(item: z.ZodMiniType, what: string, example: string, description: string): z.ZodMiniType {
  return expect(z.array(item).check(z.minLength(1)), what, example, { description });
}

/** A text or a list of texts, with a description of each and one of the whole. */
function oneOrMore(
  example: string,
  each: string,
  description: string,
  meta: Meta = {},
  what = "a string or a list of strings",
): z.ZodMiniType {
  const item = text(example, each, meta);
  return expect(z.union([item, expect(z.array(item).check(z.minLength(1)), what, example)]), what, example, { description });
}

function optional(shape: Shape): Shape {
  return Object.fromEntries(Object.entries(shape).map(([name, schema]) => [name, z.optional(schema)]));
}

function map(shape: Shape, example: string, description: string, meta: Meta = {}): z.ZodMiniObject {
  return expect(z.strictObject(shape), "a map", example, { description, ...meta });
}

/** How an option of an algorithm is written. */
function optionSchema(option: string, { type, least, example, description }: OptionDescription): z.ZodMiniType {
  const written = `${option}: ${example}`;
  if (type === "whole number") return whole(written, description, least);
  if (type === "duration") return duration(option, example, description);
  if (type === "flag") return flag(written, description);
  if (type === "text") return text(written, description);
  if (type.every((word) => typeof word === "string")) return text(written, description, { enum: type });
  return expect(z.union([z.string(), z.number()]), "a word or a number", written, { description, enum: type });
}

/** The options of each algorithm, as core describes them. */
const shapes = Object.entries(descriptions).map(([algorithm, { description, options }]) => {
  const entries = Object.entries<OptionDescription>(options);
  const shape = entries.map(([option, described]) => {
    const schema = optionSchema(option, described);
    return [option, described.optional === true ? z.optional(schema) : schema] as const;
  });
  return { algorithm, description, entries, shape: Object.fromEntries(shape) };
});

const { limit: limitOption, window: windowOption } = descriptions["sliding-window-counter"].options;
const limit = optionSchema("limit", limitOption);
const window = optionSchema("window", windowOption);

const example = "{ algorithm: fixed-window, limit: 100, window: 1m }";

const policies = shapes.map(({ algorithm, description, shape }) => {
  const named = { algorithm: withMeta(z.literal(algorithm), { description }), ...shape };
  return map(named, `policy: ${example}`, description);
});

function algorithmOf(options: readonly z.ZodMiniObject[], word: string, description: string): z.ZodMiniType {
  const choice = z.discriminatedUnion("algorithm", options as [z.ZodMiniObject, ...z.ZodMiniObject[]]);
  return expect(choice, "a map", `${word}: ${example}`, { description });
}

const planNumbers = shapes.flatMap(({ entries }) =>
  entries
    .filter(([, { type }]) => type === "whole number" || type === "duration")
    .map(([option, described]) => [option, z.optional(optionSchema(option, described))] as const),
);

/** A plan without an `algorithm` overrides numbers of the rule's own policy. */
const numbers = map(
  { algorithm: z.optional(z.undefined()), ...Object.fromEntries(planNumbers) },
  "pro: { limit: 1000 }",
  "Overrides numbers of the rule's policy.",
);

const plan = algorithmOf([...policies, numbers], "pro", "Numbers that override the policy's, or a complete policy with its `algorithm`.");

const keyPart = z.union([z.string(), z.number(), z.boolean()]);
const aKey = z.union([z.string(), z.number(), z.boolean(), z.array(keyPart)]);

const exempt = map(
  optional({
    ips: listOf(
      text("ips: [10.0.0.0/8]", "An IP address or a CIDR range."),
      "a list",
      "ips: [10.0.0.0/8]",
      "Client IP addresses and CIDR ranges that are not counted.",
    ),
    keys: listOf(
      expect(aKey, "a key", "keys: [internal]"),
      "a list",
      "keys: [internal]",
      "Keys that are not counted; a list for a tuple. For a secret key write its digest: secret:<digits>.",
    ),
  }),
  "exempt: { ips: [10.0.0.0/8] }",
  "Clients that this rule does not count.",
);

/** Names and the values that they must have. */
function expectedValues(what: string, name: string, value: string, others: string): z.ZodMiniType {
  const list = expect(z.array(z.string()).check(z.minLength(1)), "a list", `${name}: ${others}`);
  const union = expect(z.union([z.string(), z.boolean(), list]), "a string, a list of strings, true or false", `${name}: ${value}`, {
    description: `The value, with * for any characters; a list of values, one of which must match; true for any value; false if the ${what} must be missing.`,
  });
  return z.record(z.string(), union);
}

const grant = map(
  {
    key: expect(aKey, "a key", 'key: "42"', {
      description: "The key; a list for a tuple. For a secret key write its digest: secret:<digits>.",
    }),
    plan: text("plan: pro", "The name of one of the rule's plans."),
    until: text("until: 2027-01-31", "When it ends: a date (midnight in UTC), or a time with its zone.", {
      examples: ["2027-01-31", "2027-01-31T18:00:00+01:00"],
    }),
  },
  '{ key: "42", plan: pro, until: 2027-01-31 }',
  "Gives a key another plan until a time.",
);

const header = expectedValues("header", "x-api-version", '"2"', '["2", "3"]');
const entries = expectedValues("entry", "tier", "free", "[free, trial]");

const match = map(
  optional({
    method: oneOrMore("method: POST", "An HTTP method. GET covers HEAD.", "One HTTP method or several. GET covers HEAD."),
    path: oneOrMore(
      "path: /posts/:id",
      "A full path, with :name for one segment and * for any number of segments.",
      "One or several full paths, with :name for one segment and * for any number of segments.",
      { pattern: "^/[^?#+(){}\\[\\]\\\\]*$" },
    ),
    header: expect(header, "a map", 'header: { x-api-version: "2" }', {
      description: "The headers that a request must have, and their values.",
    }),
    domain: oneOrMore(
      "domain: edge",
      "A domain of Envoy's rate limit service, with * for any characters.",
      "The domains of Envoy's rate limit service, with * for any characters. The rule then counts descriptors, and no HTTP requests.",
    ),
    descriptor: expect(entries, "a map", "descriptor: { path: /login, remote_address: true }", {
      description: "The entries that a descriptor must have, and their values. The rule then counts descriptors, and no HTTP requests.",
      minProperties: 1,
    }),
  }),
  "match: { method: POST, path: /posts }",
  "The requests that the rule counts: all parts must match. Default: every HTTP request.",
  {
    anyOf: [{ properties: { domain: false, descriptor: false } }, { properties: { method: false, path: false, header: false } }],
  },
);

const cost = expect(
  z.union([withMeta(z.number(), { type: "integer", minimum: 1 }), withMeta(z.string(), { minLength: 1 })]),
  "a whole number or a name",
  "cost: 5",
  { description: "The units that a request uses: a whole number, or the name of one of the app's `costs`. Default 1." },
);

const ban = map(
  {
    after: whole("after: 10", "The number of rejections that starts a ban."),
    within: duration("within", "1m", "The time in which the rejections are counted."),
    for: duration("for", "1h", "How long the key is banned."),
  },
  "ban: { after: 10, within: 1m, for: 1h }",
  "Bans a key for a while after repeated rejections.",
);

const rule = map(
  {
    name: text("name: posts", "A unique name, for response headers, events and the keys in the store.", {
      pattern: "^[ -~]{1,128}$",
    }),
    ...optional({
      match,
      key: oneOrMore(
        "key: user",
        "ip, route, global, header:<name>, descriptor:<name>, or one of the app's `keys`. secret:<name> stores and shows only a digest.",
        "What requests are counted by: a name, or a list of names for a combined key. Default ip.",
        { minLength: 1, examples: ["ip", "global", "route", "header:x-api-key", "descriptor:remote_address", "secret:header:x-token"] },
        "a name or a list of names",
      ),
      onMissingKey: text(
        "onMissingKey: skip",
        "What happens to a request without a key: ip counts it by its address, skip lets it pass uncounted, reject rejects it, error fails it. Default ip; with key ip, error.",
        {
          enum: ["ip", "skip", "reject", "error"],
        },
      ),
      limit: withMeta(limit, { description: "With `window`: short for a sliding-window-counter policy." }),
      window,
      policy: algorithmOf(policies, "policy", "An algorithm with its options."),
      plans: expect(z.record(z.string(), plan), "a map", "plans: { pro: { limit: 1000 } }", {
        description:
          "Other limits for plans, by name. The app's `plan` says which plan a request has. A plan that is not listed has the rule's policy.",
        minProperties: 1,
      }),
      cost,
      settle: text(
        "settle: tokens",
        "The units that the request has really used, known after its response: the name of one of the app's `costs`; in floodgate gateway header:<name>, a header of the upstream's response.",
        { minLength: 1 },
      ),
      hold: withMeta(optionSchema("hold", { ...windowOption, example: "60s" }), {
        description:
          "Sets the units of a request aside, for at most this time, until settle says its real cost. They come back by themselves if the process dies.",
      }),
      refundWhen: text(
        "refundWhen: 5xx,404",
        "The response statuses of requests that are refunded. 4xx does not include 499, a client that left.",
        { pattern: statusList.source },
      ),
      headers: flag("headers: false", "Whether response headers show this limit. Default true."),
      ambiguousPath: text(
        "ambiguousPath: reject",
        "What happens to a request whose path servers read in different ways, such as /a%5c..//b: count counts it under each path that it may lead to, reject answers 400. Default count; in floodgate gateway, reject.",
        { enum: ["count", "reject"] },
      ),
      grants: expect(z.array(grant), "a list", 'grants: [{ key: "42", plan: pro, until: 2027-01-31 }]', {
        description: "Keys that have another plan until a time. It comes before the plan of the request.",
      }),
      mode: text("mode: shadow", "shadow counts and reports, but rejects nothing. Default enforce.", {
        enum: ["enforce", "shadow"],
      }),
      exempt,
      ban,
      lease: flag(
        "lease: true",
        "Whether each process takes units of a busy key ahead and spends them without asking Redis. Not with leaky-bucket and countRejected. Default: as the store is set up.",
      ),
    }),
  },
  "- { name: per-ip, key: ip, limit: 100, window: 1m }",
  "One limit: its name, which requests it counts, by what key, and how many may pass.",
  {
    oneOf: [
      { required: ["limit", "window"], properties: { limit: true, window: true, policy: false } },
      { required: ["policy"], properties: { policy: true, limit: false, window: false } },
    ],
  },
);

/** The schema of a whole file. */
export const rulesFile: z.ZodMiniType = map(
  {
    ...optional({
      $schema: text("$schema: ./schema.json", "The location of this schema, for editors."),
      exempt: withMeta(exempt, { description: "Clients that no rule counts." }),
    }),
    rules: listOf(
      rule,
      "a list of rules",
      "rules: [{ name: per-ip, key: ip, limit: 100, window: 1m }]",
      "The rules. All rules that match a request are checked in one step.",
    ),
  },
  "rules: [{ name: per-ip, key: ip, limit: 100, window: 1m }]",
  "Rate limit rules of Floodgate.",
);
