import { descriptions, type OptionDescription, statusList } from "@floodgate/core/rules";
import * as z from "zod/mini";

/**
 * The schema of a rules file: types. Core checks what the options mean together. `meta` tells editors as much of that as JSON Schema can
 * express; `json-schema.ts` has what they show.
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

function text(example: string, meta: Meta = {}): z.ZodMiniType {
  return expect(z.string(), "a string", example, meta);
}

function flag(example: string, meta: Meta = {}): z.ZodMiniType {
  return expect(z.boolean(), "true or false", example, meta);
}

function whole(example: string, minimum = 1, meta: Meta = {}): z.ZodMiniType {
  return expect(z.number(), "a whole number", example, { type: "integer", minimum, ...meta });
}

function duration(word: string, example: string, meta: Meta = {}): z.ZodMiniType {
  const unit = withMeta(z.string(), { pattern: "^0*[1-9][0-9]*(ms|s|m|h|d)$" });
  const ms = withMeta(z.number(), { type: "integer", minimum: 1000, multipleOf: 1000 });
  const what = "a duration: a whole number with a unit (ms, s, m, h, d), or a number of milliseconds that is a multiple of 1000";
  return expect(z.union([unit, ms]), what, `${word}: ${example}`, { examples: [example], ...meta });
}

function listOf(item: z.ZodMiniType, what: string, example: string): z.ZodMiniType {
  return expect(z.array(item).check(z.minLength(1)), what, example);
}

/** A text or a list of texts. */
function oneOrMore(example: string, meta: Meta = {}, what = "a string or a list of strings"): z.ZodMiniType {
  const item = text(example, meta);
  return expect(z.union([item, listOf(item, what, example)]), what, example);
}

function optional(shape: Shape): Shape {
  return Object.fromEntries(Object.entries(shape).map(([name, schema]) => [name, z.optional(schema)]));
}

function map(shape: Shape, example: string, meta: Meta = {}): z.ZodMiniObject {
  return expect(z.strictObject(shape), "a map", example, meta);
}

/** How an option of an algorithm is written. */
function optionSchema(option: string, { type, least, example, description }: OptionDescription): z.ZodMiniType {
  const written = `${option}: ${example}`;
  if (type === "whole number") return whole(written, least, { description });
  if (type === "duration") return duration(option, example, { description });
  if (type === "flag") return flag(written, { description });
  if (type === "text") return text(written, { description });
  if (type.every((word) => typeof word === "string")) return text(written, { description, enum: type });
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
  return map(named, `policy: ${example}`, { description });
});

function algorithmOf(options: readonly z.ZodMiniObject[], word: string): z.ZodMiniType {
  const choice = z.discriminatedUnion("algorithm", options as [z.ZodMiniObject, ...z.ZodMiniObject[]]);
  return expect(choice, "a map", `${word}: ${example}`);
}

const planNumbers = shapes.flatMap(({ entries }) =>
  entries
    .filter(([, { type }]) => type === "whole number" || type === "duration")
    .map(([option, described]) => [option, z.optional(optionSchema(option, described))] as const),
);

/** A plan without an `algorithm` overrides numbers of the rule's own policy. */
const numbers = map({ algorithm: z.optional(z.undefined()), ...Object.fromEntries(planNumbers) }, "pro: { limit: 1000 }");

const plan = algorithmOf([...policies, numbers], "pro");

const keyPart = z.union([z.string(), z.number(), z.boolean()]);
const aKey = z.union([z.string(), z.number(), z.boolean(), z.array(keyPart)]);

const exempt = map(
  optional({
    ips: listOf(text("ips: [10.0.0.0/8]"), "a list", "ips: [10.0.0.0/8]"),
    keys: listOf(expect(aKey, "a key", "keys: [internal]"), "a list", "keys: [internal]"),
  }),
  "exempt: { ips: [10.0.0.0/8] }",
);

/** Names and the values that they must have. */
function expectedValues(name: string, value: string, others: string): z.ZodMiniType {
  const list = listOf(z.string(), "a list", `${name}: ${others}`);
  const union = expect(z.union([z.string(), z.boolean(), list]), "a string, a list of strings, true or false", `${name}: ${value}`);
  return z.record(z.string(), union);
}

const grant = map(
  {
    key: expect(aKey, "a key", 'key: "42"'),
    plan: text("plan: pro"),
    until: text("until: 2027-01-31", { examples: ["2027-01-31", "2027-01-31T18:00:00+01:00"] }),
  },
  '{ key: "42", plan: pro, until: 2027-01-31 }',
);

const match = map(
  optional({
    method: oneOrMore("method: POST"),
    path: oneOrMore("path: /posts/:id", { pattern: "^/[^?#+(){}|\\[\\]\\\\]*$" }),
    header: expect(expectedValues("x-api-version", '"2"', '["2", "3"]'), "a map", 'header: { x-api-version: "2" }'),
    domain: oneOrMore("domain: edge"),
    descriptor: expect(expectedValues("tier", "free", "[free, trial]"), "a map", "descriptor: { path: /login, remote_address: true }", {
      minProperties: 1,
    }),
  }),
  "match: { method: POST, path: /posts }",
  {
    anyOf: [{ properties: { domain: false, descriptor: false } }, { properties: { method: false, path: false, header: false } }],
  },
);

const cost = expect(
  z.union([withMeta(z.number(), { type: "integer", minimum: 1 }), withMeta(z.string(), { minLength: 1 })]),
  "a whole number or a name",
  "cost: 5",
);

const ban = map(
  { after: whole("after: 10"), within: duration("within", "1m"), for: duration("for", "1h") },
  "ban: { after: 10, within: 1m, for: 1h }",
);

const rule = map(
  {
    name: text("name: posts", { pattern: "^[ -~]{1,128}$" }),
    ...optional({
      match,
      key: oneOrMore(
        "key: user",
        { minLength: 1, examples: ["ip", "global", "route", "header:x-api-key", "descriptor:remote_address", "secret:header:x-token"] },
        "a name or a list of names",
      ),
      onMissingKey: text("onMissingKey: skip", { enum: ["ip", "skip", "reject", "error"] }),
      limit,
      window,
      policy: algorithmOf(policies, "policy"),
      plans: expect(z.record(z.string(), plan), "a map", "plans: { pro: { limit: 1000 } }", { minProperties: 1 }),
      cost,
      settle: text("settle: tokens", { minLength: 1 }),
      hold: optionSchema("hold", { ...windowOption, example: "60s" }),
      refundWhen: text("refundWhen: 5xx,404", { pattern: statusList.source }),
      headers: flag("headers: false"),
      ambiguousPath: text("ambiguousPath: reject", { enum: ["count", "reject"] }),
      grants: expect(z.array(grant), "a list", 'grants: [{ key: "42", plan: pro, until: 2027-01-31 }]'),
      mode: text("mode: shadow", { enum: ["enforce", "shadow"] }),
      exempt,
      ban,
      lease: flag("lease: true"),
    }),
  },
  "- { name: per-ip, key: ip, limit: 100, window: 1m }",
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
    ...optional({ $schema: text("$schema: ./schema.json"), exempt }),
    rules: listOf(rule, "a list of rules", "rules: [{ name: per-ip, key: ip, limit: 100, window: 1m }]"),
  },
  "rules: [{ name: per-ip, key: ip, limit: 100, window: 1m }]",
);
