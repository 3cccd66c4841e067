import type { RuleSet } from "@floodgate/core/rules";
import fc from "fast-check";

/** Valid rules that use every option of a file. */

type Arbitrary = fc.Arbitrary<Record<string, unknown>>;

const count = fc.integer({ min: 1, max: 1000 });
const duration = fc.oneof(
  fc.tuple(fc.integer({ min: 1, max: 60 }), fc.constantFrom("s", "m", "h")).map(([n, unit]) => `${n}${unit}`),
  fc.integer({ min: 1, max: 60 }).map((n) => n * 1000),
);
const limited = { limit: count, window: duration };

function some(options: Record<string, fc.Arbitrary<unknown>>): Arbitrary {
  return fc.record(options, { requiredKeys: [] });
}

function policy(
  algorithm: string,
  required: Record<string, fc.Arbitrary<unknown>>,
  optional: Record<string, fc.Arbitrary<unknown>> = {},
): Arbitrary {
  return fc.record(
    { algorithm: fc.constant(algorithm), ...required, ...optional },
    { requiredKeys: ["algorithm", ...Object.keys(required)] as "algorithm"[] },
  );
}

const policies = fc.oneof(
  policy("fixed-window", limited),
  policy("sliding-window-log", limited, { countRejected: fc.boolean() }),
  // One bucket, because not every window here divides into more.
  policy("sliding-window-counter", limited, { buckets: fc.constant(1) }),
  policy("token-bucket", { capacity: count, refill: count, every: duration }, { style: fc.constantFrom("smooth", "interval") }),
  policy("leaky-bucket", { capacity: count, leak: count, every: fc.constant("1s") }, { maxDelayMs: fc.nat(10_000) }),
  policy("gcra", limited, { burst: count }),
);

/** Strings that YAML would not read as strings without quotes. */
const awkward = fc.constantFrom(
  "on",
  "no",
  "null",
  "~",
  "1",
  "1e3",
  "true",
  "#",
  "a: b",
  "- a",
  "{",
  "*a",
  "&a",
  "!x",
  "<<",
  "'",
  '"',
  " a",
  "é",
  "😀",
);
const text = fc
  .oneof(awkward, fc.string({ minLength: 1 }), fc.string({ unit: "grapheme", minLength: 1 }))
  // Without quotes, as `stringify` writes them, the last three are mistakes.
  .filter((text) => !/[\ufffd\u007f\u2028\u2029]/.test(text));
const name = fc
  .oneof(awkward, fc.string({ minLength: 1, maxLength: 40 }))
  .filter((text) => /^[ -~]+$/.test(text) && !["__proto__", "<<"].includes(text));
const appName = fc.constantFrom("user", "tenant", "api_key", "plan.id");
const keyName = fc.oneof(appName, fc.constantFrom("ip", "global", "header:x-api-key", "secret:user", "secret:header:x-a"));
const path = fc.constantFrom("/", "/posts", "/posts/:id", "/files/*", "/%F0%9F%98%80");
const method = fc.constantFrom("GET", "post", "DELETE");
const headerName = fc.constantFrom("x-a", "x-b", "x-c");
const headerValue = fc.oneof(awkward, fc.string({ minLength: 1 })).map((value) => value.trim() || "*");

function oneOrMore<T>(item: fc.Arbitrary<T>): fc.Arbitrary<T | T[]> {
  return fc.oneof(item, fc.array(item, { minLength: 1, maxLength: 3 }));
}

const exempt = some({
  ips: fc.array(fc.constantFrom("127.0.0.1", "10.0.0.0/8", "2001:db8::/32"), { minLength: 1, maxLength: 3 }),
  keys: fc.array(fc.oneof(text, fc.integer(), fc.boolean(), fc.tuple(text, fc.integer())), { minLength: 1, maxLength: 3 }),
});

const match = some({
  method: oneOrMore(method),
  path: oneOrMore(path),
  header: fc.dictionary(headerName, fc.oneof(oneOrMore(headerValue), fc.boolean()), { maxKeys: 3 }),
});

const entryTest = fc.oneof(oneOrMore(awkward), fc.boolean());

/** A match for descriptors has a domain, or entries, or both. */
const descriptorMatch = fc
  .tuple(some({ domain: oneOrMore(awkward) }), some({ descriptor: fc.dictionary(name, entryTest, { minKeys: 1, maxKeys: 3 }) }))
  .map(([domain, entries]) => ({ ...domain, ...entries }))
  .filter((match) => Object.keys(match).length > 0);

const rest = some({
  match,
  key: oneOrMore(keyName),
  onMissingKey: fc.constantFrom("error", "skip", "reject"),
  plans: fc.dictionary(name, policies, { minKeys: 1, maxKeys: 3 }),
  cost: fc.oneof(fc.constant(1), fc.constantFrom("items", "tokens")),
  settle: fc.constantFrom("items", "tokens"),
  mode: fc.constantFrom("enforce", "shadow"),
  exempt,
  ban: fc.record({ after: count, within: duration, for: duration }),
  lease: fc.constant(false),
});

const httpRule = fc
  .tuple(name, rest, fc.oneof(fc.record(limited), fc.record({ policy: policies })))
  .map(([name, rest, limit]) => ({ name, ...rest, ...limit }));

const descriptorKey = fc.oneof(appName, fc.constantFrom("ip", "global", "descriptor:remote_address", "secret:descriptor:api key"));

const descriptorRule = fc.record(
  {
    name,
    match: descriptorMatch,
    limit: count,
    window: duration,
    key: oneOrMore(descriptorKey),
    mode: fc.constantFrom("enforce", "shadow"),
  },
  { requiredKeys: ["name", "match", "limit", "window"] },
);

const rule = fc.oneof({ weight: 3, arbitrary: httpRule }, { weight: 1, arbitrary: descriptorRule });

export const ruleSets: fc.Arbitrary<RuleSet> = fc.record(
  { rules: fc.uniqueArray(rule, { selector: ({ name }) => name, minLength: 1, maxLength: 4 }), exempt },
  { requiredKeys: ["rules"] },
) as fc.Arbitrary<unknown> as fc.Arbitrary<RuleSet>;
