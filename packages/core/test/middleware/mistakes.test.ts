import { describe, expect, it } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { memoryStore } from "../../../store-memory/src/index.js";
import { RateLimit, type RateLimitOptions } from "../../src/adapter.js";
import { reader } from "../reader.js";

const limit = { limit: 5, window: "1m" } as const;
const made = (options: object) =>
  new RateLimit<object>("rateLimit", options as RateLimitOptions<object, string>, ["onLimited"], reader, () => simpleStore());

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return `${(error as { code: string }).code}: ${(error as Error).message}`;
  }
  throw new Error("nothing was refused");
}

/** What people write in their first hour, and what the error tells them. */
describe("an error says what is wrong, what was given and what to write", () => {
  it.each<[string, object, RegExp]>([
    [
      "the name of a header as a key",
      { ...limit, key: "x-api-key" },
      /^FLOODGATE_UNKNOWN_KEY: .*"x-api-key"\. Did you mean "header:x-api-key"\?/,
    ],
    ["such a name in a tuple", { ...limit, key: ["ip", "X-Tenant"] }, /"X-Tenant"\. Did you mean "header:x-tenant"\?/],
    ["a name of Object.prototype as a key", { ...limit, key: "constructor" }, /^FLOODGATE_UNKNOWN_KEY: .*"constructor"/],
    ["the name of a file as rules", { rules: "limits.yaml" }, /Write rules: await fileRules\("limits\.yaml"\) of @floodgate\/rules\.$/],
    [
      "an option beside rules",
      { rules: [{ name: "a", ...limit }], limit: 5 },
      /`limit` cannot stand beside them\. Write them in a rule: rules: \[/,
    ],
    [
      "headers in a match",
      { rules: [{ name: "a", ...limit, match: { headers: { x: "1" } } }] },
      /Write header: \{ "x-api-version": "2" \}\.$/,
    ],
    ["a cost as text", { ...limit, cost: "3" }, /^FLOODGATE_INVALID_COST: .*but was "3"\. Write cost: 3\.$/],
    ["headers as a key", { ...limit, key: "headers:X-Tenant" }, /Did you mean "header:x-tenant"\?/],
    ["a header without a name as a key", { ...limit, key: "header" }, /Did you mean "header:x-api-key"\?/],
    [
      "a list of keys",
      { ...limit, keys: ["user"] },
      /`keys` must be an object of functions, but was an array of 1\. Write keys: \{ user: /,
    ],
    [
      "a proxy setting of a framework in clientIp",
      { ...limit, clientIp: { trustProxy: 1 } },
      /no option `trustProxy`\. Write trustedHops: 1\.$/,
    ],
    [
      "a plan in a grant without plans",
      { rules: [{ name: "a", ...limit, grants: [{ key: "a", plan: "pro", until: "2030-01-01" }] }] },
      /one of the rule's plans \(the rule has none\), but was "pro"/,
    ],
    ["weeks", { limit: 5, window: "1w" }, /^FLOODGATE_INVALID_DURATION: .*was "1w"\. Write window: "7d"\./],
    [
      "an option of rateLimit in a rule",
      { rules: [{ name: "a", ...limit, skip: () => true }] },
      /^FLOODGATE_UNKNOWN_OPTION: .*no option `skip`\. That is an option of rateLimit: skip/,
    ],
    [
      "a format of headers in a rule",
      { rules: [{ name: "a", ...limit, headers: "legacy" }] },
      /^FLOODGATE_INVALID_OPTION: .*rules\[0\]: `headers` of a rule .* but was "legacy"\. Write headers: false\. Their format is an option beside `rules`\./,
    ],
    [
      "a header of a response that only the gateway sees",
      { ...limit, settle: "header:x-cost" },
      /^FLOODGATE_UNKNOWN_COST: .*`settle` names "header:x-cost", which `costs` does not define\. Write costs: /,
    ],
    [
      "a status that does not exist",
      { ...limit, refundWhen: "600" },
      /^FLOODGATE_INVALID_OPTION: .*`refundWhen` must be a function or a list of statuses, but was "600"\. Write refundWhen: \(status\) => status >= 500, or refundWhen: "5xx"\./,
    ],
    ["a status as a number", { ...limit, refundWhen: 500 }, /`refundWhen` must be a function or a list of statuses, but was 500\./],
    ["null as rules", { rules: null }, /`rules` must be an array of at least one rule, but was null/],
    ["a status", { ...limit, statusCode: 503 }, /no option `statusCode`\. Write onLimited: \(req, res\) => res\.status\(429\)\.send\(/],
    [
      "the Number of a variable that is not set",
      { limit: Number(undefined), window: "1m" },
      /^FLOODGATE_INVALID_OPTION: .*but was NaN: a variable is not set\. Write limit: Number\(process\.env\.LIMIT \?\? 100\)\./,
    ],
    ["a negative limit", { limit: -1, window: "1m" }, /: `limit` must be a whole number of at least 1, but was -1\. Write limit: 100\.$/],
    [
      "a limit that is no exact number",
      { limit: 2 ** 53, window: "1m" },
      /: `limit` must be a whole number of at least 1 and below 2\^53, but was/,
    ],
    [
      "a limit too large for its window",
      { limit: 2 ** 52, window: "1m" },
      /^FLOODGATE_POLICY_TOO_LARGE: .* Lower the limit to at most \d+, /,
    ],
    [
      "a request of Node, because rateLimit was mounted and not called",
      { headers: {}, socket: {}, url: "/" },
      /^FLOODGATE_INVALID_OPTION: .*given a request of Node.* Write app\.use\(rateLimit\(\{ limit: 100, window: "1m" \}\)\)/,
    ],
  ])("%s", (_, options, message) => {
    const said = messageOf(() => made(options));
    expect(said).toMatch(message);
    // It names what the user called, and not a function inside.
    expect(said).toMatch(/^FLOODGATE_\w+: rateLimit\b/);
  });

  it.each([
    [["ip", "header:x-user"], "[ip, header:x-user]"],
    [["ip", "secret:header:x-user"], "[ip, secret:header:x-user]"],
  ])("a key of one part for a limiter that counts tuples: %j", (key, parts) => {
    const limiter = made({ ...limit, key }).version.limiters.get("default");
    for (const wrong of ["ab", ["a"], ["a", "b", "c"]]) {
      for (const use of ["reset", "peek", "keyState"] as const) {
        expect(messageOf(() => limiter?.[use](wrong))).toContain(
          `FLOODGATE_INVALID_KEY: The key of "default" is a tuple of 2 parts, but another key was given. Write all parts in the rule's order: ${parts}.`,
        );
      }
    }
    limiter?.reset(["192.0.2.1", "ann"]);
    limiter?.reset({ missingKeyIp: "192.0.2.1" });
  });

  it("concurrency, wherever a policy stands, beside a store that cannot renew slots", () => {
    const policy = { algorithm: "concurrency", limit: 5, hold: "1m" } as const;
    const store = Object.assign(memoryStore(), { renew: undefined });
    const planned = { ...limit, plans: { pro: policy } };
    const live = (rule: object): object => ({ current: { rules: [{ name: "a", ...rule }] }, subscribe: () => () => undefined });
    // All have one name: a refused middleware holds none.
    for (const rule of [{ policy }, planned]) {
      for (const way of [rule, { rules: [{ name: "a", ...rule }] }, { rules: live(rule) }]) {
        const options = { ...way, store, ...(rule === planned && { plan: () => "pro" }) };
        expect(messageOf(() => made(options))).toMatch(/: `concurrency` needs a `store` with the method `renew`/);
      }
    }
  });

  it.each<[string, unknown, RegExp]>([
    ["a whole list", "192.0.2.1, 192.0.2.2", /answered the list "192\.0\.2\.1, 192\.0\.2\.2".* Write clientIp: \{ trustedHops: 1 \}/],
    ["a number", 3_221_225_985, /must answer an address as a text, or undefined, but answered 3221225985\./],
    ["an array", ["192.0.2.1"], /must answer an address as a text, or undefined, but answered an array of 1\./],
  ])("%s as the answer of clientIp", async (_, wrong, message) => {
    for (const clientIp of [() => wrong, async () => wrong]) {
      const answer = (async () => made({ ...limit, clientIp, onMissingKey: "skip" }).decide({}))();
      await expect(answer).rejects.toMatchObject({ code: "FLOODGATE_NO_CLIENT_IP", message: expect.stringMatching(message) });
    }
  });
});

it.each<[string, object, readonly (string | number)[]]>([
  ["a key", { ...limit, keys: { user: "x-user" } }, ["keys", "user"]],
  ["a built-in key", { ...limit, keys: { ip: () => "a" } }, ["keys", "ip"]],
  ["a cost", { ...limit, costs: { tokens: 1 } }, ["costs", "tokens"]],
  ["the client's address", { ...limit, clientIp: { trustedHops: "1" } }, ["clientIp", "trustedHops"]],
  ["a list of no keys", { ...limit, key: [] }, ["key"]],
  ["plans beside a policy function", { policy: () => limit, plans: { pro: limit }, plan: () => "pro" }, ["plans"]],
  ["a limit that is a function", { ...limit, limit: () => 5 }, ["limit"]],
  ["a key that stands in for itself", { ...limit, key: "ip", onMissingKey: "ip" }, ["onMissingKey"]],
  ["a window beside a policy", { policy: limit, window: "1m" }, ["window"]],
  ["what happens when the store fails", { ...limit, onStoreError: "open" }, ["onStoreError"]],
])("the error of %s has its path", (_, options, at) => {
  expect(() => made(options)).toThrow(expect.objectContaining({ at }));
});
