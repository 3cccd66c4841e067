import * as z from "zod/mini";
import { rulesFile } from "./schema.js";

// Apart from the schema, so that an app which only reads rules does not carry these texts.

const values = (what: string): string =>
  `The value, with * for any characters; a list of values, one of which must match; true for any value; false if the ${what} must be missing.`;
const secret = "For a secret key write its digest: secret:<digits>.";
const ips = "Client IP addresses and CIDR ranges that are not counted.";
const ip = "An IP address or a CIDR range.";
const exemptKeys = `Keys that are not counted; a list for a tuple. ${secret}`;

/** What editors show, by path: `[]` is one item where a list may stand, `*` each value of a map. */
const descriptions: Readonly<Record<string, string>> = {
  "": "Rate limit rules of Floodgate.",
  ".$schema": "The location of this schema, for editors.",
  ".exempt": "Clients that no rule counts.",
  ".exempt.ips": ips,
  ".exempt.ips[]": ip,
  ".exempt.keys": exemptKeys,
  ".rules": "The rules. All rules that match a request are checked in one step.",
  ".rules[]": "One limit: its name, which requests it counts, by what key, and how many may pass.",
  ".rules[].name": "A unique name, for response headers, events and the keys in the store.",
  ".rules[].match": "The requests that the rule counts: all parts must match. Default: every HTTP request.",
  ".rules[].match.method": "One HTTP method or several. GET covers HEAD.",
  ".rules[].match.method[]": "An HTTP method. GET covers HEAD.",
  ".rules[].match.path": "One or several full paths, with :name for one segment and * for any number of segments.",
  ".rules[].match.path[]": "A full path, with :name for one segment and * for any number of segments.",
  ".rules[].match.header": "The headers that a request must have, and their values.",
  ".rules[].match.header*": values("header"),
  ".rules[].match.domain":
    "The domains of Envoy's rate limit service, with * for any characters. The rule then counts descriptors, and no HTTP requests.",
  ".rules[].match.domain[]": "A domain of Envoy's rate limit service, with * for any characters.",
  ".rules[].match.descriptor":
    "The entries that a descriptor must have, and their values. The rule then counts descriptors, and no HTTP requests.",
  ".rules[].match.descriptor*": values("entry"),
  ".rules[].key": "What requests are counted by: a name, or a list of names for a combined key. Default ip.",
  ".rules[].key[]":
    "ip, route, global, header:<name>, descriptor:<name>, or one of the app's `keys`. secret:<name> stores and shows only a digest.",
  ".rules[].onMissingKey":
    "What happens to a request without a key: ip counts it by its address, skip lets it pass uncounted, reject rejects it, error fails it. Default ip; with key ip, error.",
  ".rules[].limit": "With `window`: short for a sliding-window-counter policy.",
  ".rules[].policy": "An algorithm with its options.",
  ".rules[].plans":
    "Other limits for plans, by name. The app's `plan` says which plan a request has. A plan that is not listed has the rule's policy.",
  ".rules[].plans*": "Numbers that override the policy's, or a complete policy with its `algorithm`.",
  ".rules[].plans*[]": "Overrides numbers of the rule's policy.",
  ".rules[].cost": "The units that a request uses: a whole number, or the name of one of the app's `costs`. Default 1.",
  ".rules[].settle":
    "The units that the request has really used, known after its response: the name of one of the app's `costs`; in floodgate gateway header:<name>, a header of the upstream's response.",
  ".rules[].hold":
    "Sets the units of a request aside, for at most this time, until settle says its real cost. They come back by themselves if the process dies.",
  ".rules[].refundWhen": "The response statuses of requests that are refunded. 4xx does not include 499, a client that left.",
  ".rules[].headers": "Whether response headers show this limit. Default true.",
  ".rules[].ambiguousPath":
    "What happens to a request whose path servers read in different ways, such as /a%5c..//b: count counts it under each path that it may lead to, reject answers 400. Default count; in floodgate gateway, reject.",
  ".rules[].grants": "Keys that have another plan until a time. It comes before the plan of the request.",
  ".rules[].grants[]": "Gives a key another plan until a time.",
  ".rules[].grants[].key": `The key; a list for a tuple. ${secret}`,
  ".rules[].grants[].plan": "The name of one of the rule's plans.",
  ".rules[].grants[].until": "When it ends: a date (midnight in UTC), or a time with its zone.",
  ".rules[].mode": "shadow counts and reports, but rejects nothing. Default enforce.",
  ".rules[].exempt": "Clients that this rule does not count.",
  ".rules[].exempt.ips": ips,
  ".rules[].exempt.ips[]": ip,
  ".rules[].exempt.keys": exemptKeys,
  ".rules[].ban": "Bans a key for a while after repeated rejections.",
  ".rules[].ban.after": "The number of rejections that starts a ban.",
  ".rules[].ban.within": "The time in which the rejections are counted.",
  ".rules[].ban.for": "How long the key is banned.",
  ".rules[].lease":
    "Whether each process takes units of a busy key ahead and spends them without asking Redis. Not with leaky-bucket and countRejected. Default: as the store is set up.",
};

interface JsonSchema {
  readonly type?: string;
  description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly additionalProperties?: JsonSchema | false;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
}

/** Adds the descriptions to a schema and all in it. */
function describe(schema: JsonSchema, path: string): JsonSchema {
  const { properties = {}, items, additionalProperties, anyOf = [], oneOf = [] } = schema;
  const description = descriptions[path];
  if (description !== undefined) schema.description = description;
  for (const [name, property] of Object.entries(properties)) describe(property, `${path}.${name}`);
  if (items !== undefined) describe(items, `${path}[]`);
  if (typeof additionalProperties === "object") describe(additionalProperties, `${path}*`);
  for (const form of [...anyOf, ...oneOf]) {
    // Other forms only say which options go together. An algorithm has a description of core's.
    if (form.type === "array") describe(form.items as JsonSchema, `${path}[]`);
    else if (form.type !== undefined && form.description === undefined) describe(form, `${path}[]`);
  }
  return schema;
}

const options = {
  target: "draft-2020-12",
  // Stands for `algorithm` in a plan that overrides numbers: it must be absent.
  unrepresentable: () => ({ not: {} }),
} as const;

/** The JSON Schema (draft 2020-12) of a rules file, for editors and validators. Also published as `schema.json`. */
export const rulesSchema: Readonly<Record<string, unknown>> = /* @__PURE__ */ describe(
  /* @__PURE__ */ z.toJSONSchema(rulesFile, options) as JsonSchema,
  "",
) as Readonly<Record<string, unknown>>;
